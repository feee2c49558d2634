#!/usr/bin/env python3
"""Makes the pictures of this benchmark: the same Debian packages and the same Pillow give the same bytes.

  python make_photos.py --out DIR [--root /usr/share] [--jobs 2]

photo/        3,072 JPEGs cut from real wallpaper photos (+ .txt captions) as loose files
photo-wds/    the same as 8 WebDataset tar shards (key.jpg, key.txt, key.json), 384 samples each (~64 MB)
png/          real PNGs: every Tux Paint stamp with a caption, plus 1,276 sampled openclipart pictures
png-wds/      the same as tar shards
manifest.json sizes, captions and a SHA-256 over all photo bytes
Sources: Debian packages tuxpaint-stamps-default openclipart-png mate-backgrounds ukui-wallpapers
lomiri-wallpapers-16.04 lomiri-wallpapers-20.04 plasma-workspace-wallpapers.
"""
import argparse, hashlib, io, json, os, random, tarfile
from multiprocessing import Pool
from PIL import Image
Image.MAX_IMAGE_PIXELS = None
N, SHARDS, SEED = 3072, 8, 20261129
PHOTOS = """backgrounds/mate/abstract/Elephants_5640x3172.jpg backgrounds/mate/nature/Blinds.jpg
backgrounds/mate/nature/Aqua.jpg backgrounds/mate/nature/Dune.jpg backgrounds/mate/nature/Garden.jpg backgrounds/mate/nature/LadyBird.jpg
backgrounds/mate/nature/RainDrops.jpg backgrounds/mate/nature/Storm.jpg backgrounds/mate/nature/TwoWings.jpg
backgrounds/mate/nature/Wood.jpg backgrounds/mate/nature/YellowFlower.jpg backgrounds/2004default.jpg
backgrounds/firstgeneration.jpg backgrounds/rhythm.jpg backgrounds/string.jpg backgrounds/the-mouse.jpg
backgrounds/calla.png backgrounds/goldfish.png backgrounds/Bridge_by_Sander_Klootwijk.jpg backgrounds/Dragonfly_by_Bolly.jpg
backgrounds/Picture_0B_by_freespace.jpg backgrounds/Picture_1A_by_freespace.jpg backgrounds/Wine_by_Jakkub_Mede.jpg
backgrounds/aitzgorri_by_Aitzol_Berasategi.jpg backgrounds/analogpattern_by_Peter_Nerlich.jpg
backgrounds/friends_by_Aitzol_Berasategi.jpg backgrounds/greentock_by_Peter_Nerlich.jpg
backgrounds/life_by_Aitzol_Berasategi.jpg backgrounds/picosdeeuropa_by_Aitzol_Berasategi.jpg
backgrounds/seeding_by_Clements_Engelhardt.jpg backgrounds/sunset_by_Aitzol_Berasategi.jpg
backgrounds/umang_by_Abhishek_Mudgal.jpg backgrounds/Fossa_by_Jasper_Roks.jpg backgrounds/Infinite-Sea_by_Aury88.jpg
backgrounds/Kleiber_by_Lukas_Baubkus.jpg wallpapers/Autumn/contents/images/2560x1600.jpg
wallpapers/FallenLeaf/contents/images/2560x1600.jpg wallpapers/BytheWater/contents/images/2560x1600.jpg
wallpapers/Path/contents/images/2560x1600.jpg wallpapers/ColorfulCups/contents/images/2560x1600.jpg
wallpapers/EveningGlow/contents/images/2560x1600.jpg wallpapers/MilkyWay/contents/images/5120x2880.png""".split()
WORDS = """a the of in on with and under near behind between small large old young red green blue grey golden dark bright
river mountain valley flower leaf tree forest bridge boat harbour sea wave sand dune rain drop window street lamp house roof
tower church market crowd child woman man dog cat bird dragonfly elephant beetle butterfly horse cow field meadow fence road
path stone rock cliff snow ice cloud sky sun moon star sunset sunrise morning evening winter summer autumn spring photograph
picture view close wide blurred sharp quiet busy empty wet dry warm cold soft hard light shadow reflection pattern texture
wood metal glass paper cloth bottle cup wine bread fruit apple orange lemon table chair door wall floor garden park bench
standing sitting running flying swimming looking holding carrying waiting resting growing falling shining covering crossing""".split()
RATIOS = [(1, 1), (4, 3), (3, 2), (16, 9), (3, 4), (2, 3), (9, 16)]


def plan():
    rng = random.Random(SEED)
    out, seen = [], set()
    for i in range(N):
        src = rng.randrange(len(PHOTOS))
        r = rng.random()
        if r < 0.7:
            a, b = RATIOS[rng.randrange(len(RATIOS))]
            ar = a / b
        else:
            ar = 2.0 ** rng.uniform(-1.2, 1.2)
        long = rng.randint(384, 1600)
        w, h = (long, round(long / ar)) if ar >= 1 else (round(long * ar), long)
        while True:
            cap = " ".join(rng.choice(WORDS) for _ in range(rng.randint(5, 120)))
            if cap not in seen:
                seen.add(cap)
                break
        out.append(dict(i=i, key=f"{i:06d}", src=src, w=w, h=h, zoom=rng.random(), fx=rng.random(), fy=rng.random(), caption=cap))
    return out


def one_source(arg):
    root, path, items = arg
    im = Image.open(os.path.join(root, path)).convert("RGB")
    W, H = im.size
    res = []
    for it in items:
        w, h = it["w"], it["h"]
        fit = min(W / w, H / h)                       # largest crop of that shape, in units of the target
        z = fit if fit <= 1 else 1 + it["zoom"] * (fit - 1)
        cw, ch = max(1, min(W, round(w * z))), max(1, min(H, round(h * z)))
        x, y = int(it["fx"] * (W - cw)), int(it["fy"] * (H - ch))
        t = im.resize((w, h), Image.Resampling.LANCZOS, box=(x, y, x + cw, y + ch), reducing_gap=2.0)
        b = io.BytesIO()
        t.save(b, "JPEG", quality=85, subsampling="4:2:0")
        res.append((it["i"], b.getvalue()))
    return res


def add(tar, name, data):
    ti = tarfile.TarInfo(name)
    ti.size = len(data)
    ti.mtime = 0
    tar.addfile(ti, io.BytesIO(data))


def write(out, name, samples, shards, ext):
    """samples: list of (key, bytes, meta) ; writes loose files and shards of equal sample count"""
    d = os.path.join(out, name)
    w = os.path.join(out, name + "-wds")
    os.makedirs(d, exist_ok=True)
    os.makedirs(w, exist_ok=True)
    per = -(-len(samples) // shards)
    for s in range(shards):
        with tarfile.open(os.path.join(w, f"shard-{s:05d}.tar"), "w", format=tarfile.USTAR_FORMAT) as tar:
            for key, data, meta in samples[s * per:(s + 1) * per]:
                txt = meta["caption"].encode()
                js = json.dumps(meta, sort_keys=True).encode()
                for e, b in ((ext, data), ("txt", txt), ("json", js)):
                    add(tar, f"{key}.{e}", b)
                open(os.path.join(d, f"{key}.{ext}"), "wb").write(data)
                open(os.path.join(d, f"{key}.txt"), "wb").write(txt)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", default=os.environ.get("DATA"), required="DATA" not in os.environ)
    ap.add_argument("--root", default="/usr/share")
    ap.add_argument("--jobs", type=int, default=2)
    a = ap.parse_args()
    items = plan()
    per = {}
    for it in items:
        per.setdefault(it["src"], []).append(it)
    blobs = [None] * N
    with Pool(a.jobs) as p:
        for res in p.imap_unordered(one_source, [(a.root, PHOTOS[s], v) for s, v in sorted(per.items())]):
            for i, b in res:
                blobs[i] = b
    order = list(range(N))                             # mix sources over shards
    photo = [(items[i]["key"], blobs[i], dict(key=items[i]["key"], caption=items[i]["caption"], width=items[i]["w"],
              height=items[i]["h"], source=os.path.basename(PHOTOS[items[i]["src"]]))) for i in order]
    write(a.out, "photo", photo, SHARDS, "jpg")
    # real PNGs
    png = []
    stamps = os.path.join(a.root, "tuxpaint/stamps")
    for dp, dn, fn in sorted(os.walk(stamps)):
        for f in sorted(fn):
            t = os.path.join(dp, f[:-4] + ".txt")
            if f.endswith(".png") and os.path.exists(t):
                cap = open(t, encoding="utf8", errors="replace").readline().strip()
                png.append((os.path.join(dp, f), cap))
    clip = []
    for dp, dn, fn in sorted(os.walk(os.path.join(a.root, "openclipart/png"))):
        clip += [os.path.join(dp, f) for f in sorted(fn) if f.endswith(".png")]
    clip = [c for c in clip if not os.path.islink(c) and 256 < os.path.getsize(c) < 4 << 20]
    n = 2048 - len(png)
    for c in sorted(random.Random(SEED + 1).sample(clip, n)):
        png.append((c, os.path.relpath(c, os.path.join(a.root, "openclipart/png"))[:-4].replace("/", " ").replace("_", " ")))
    random.Random(SEED + 2).shuffle(png)
    ps = []
    for i, (f, cap) in enumerate(png):
        data = open(f, "rb").read()
        w, h = Image.open(io.BytesIO(data)).size
        ps.append((f"{i:06d}", data, dict(key=f"{i:06d}", caption=f"{cap} #{i}", width=w, height=h, source=os.path.basename(f))))
    write(a.out, "png", ps, 4, "png")
    h = hashlib.sha256()
    for b in blobs:
        h.update(b)
    hp = hashlib.sha256()
    for p in ps:
        hp.update(p[1])
    man = dict(photo=[dict(m, bytes=len(b)) for _, b, m in photo], png=[dict(m, bytes=len(b)) for _, b, m in ps],
               photo_sha256=h.hexdigest(), png_sha256=hp.hexdigest(), photo_bytes=sum(map(len, blobs)), png_bytes=sum(len(p[1]) for p in ps))
    json.dump(man, open(os.path.join(a.out, "manifest.json"), "w"))
    mp = sum(m["width"] * m["height"] for m in man["photo"]) / N / 1e6
    print(json.dumps(dict(photos=N, photo_bytes=man["photo_bytes"], mean_megapixels=round(mp, 4), pngs=len(ps), png_bytes=man["png_bytes"],
                          png_mean_megapixels=round(sum(m["width"] * m["height"] for m in man["png"]) / len(ps) / 1e6, 4),
                          photo_sha256=man["photo_sha256"], png_sha256=man["png_sha256"])))


if __name__ == "__main__":
    main()
