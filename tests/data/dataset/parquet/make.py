"""Makes the parquet files of this folder: needs pyarrow 26 (pip install pyarrow==26.0.1). python3 make.py"""

import pathlib
import struct
import zlib

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent


def png(number, side=8):
    """A picture of one colour, another one for each number."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = b"\0" + bytes([number * 11 % 256, number * 7 % 256, 90]) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row * side)) + chunk(b"IEND", b"")


def write(name, table, **options):
    pq.write_table(table, HERE / name, **options)


IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def hugging_face():
    """As `datasets` writes an Image column; rows 3, 4, 5 and 6 have no bytes, no picture, no caption, an empty one."""
    images = [{"bytes": png(i), "path": f"{i}.png"} for i in range(20)]
    images[3] = {"bytes": None, "path": "elsewhere.png"}
    images[4] = None
    captions = [f"picture {i}" for i in range(20)]
    captions[5] = None
    captions[6] = "  "
    images[7] = {"bytes": b"no picture", "path": None}
    table = pa.table({"id": list(range(20)), "image": pa.array(images, IMAGE), "caption": captions})
    write("hugging_face.parquet", table, row_group_size=8)


def dictionaries():
    """Dictionary columns, a list of captions, large types, zstd."""
    picture = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1], pa.int32()), pa.array([png(1), png(2)]))
    texts = pa.array([["a", "b"], ["c"], ["d"], [None, ""]], pa.large_list(pa.large_string()))
    write("dictionaries.parquet", pa.table({"jpg": picture, "texts": texts}), compression="zstd")


def nested():
    """Picture and text inside of a struct; a column with dots in its name; a list of pictures."""
    inner = pa.struct([("picture", IMAGE), ("alt", pa.string())])
    rows = [{"picture": {"bytes": png(i), "path": None}, "alt": f"alt {i}"} for i in range(3)] + [None]
    several = pa.array([[{"bytes": png(1), "path": None}]] * 4, pa.list_(IMAGE))
    write("nested.parquet", pa.table({"page": pa.array(rows, inner), "a.b": ["w", "x", "y", "z"], "images": several}))


def one_group(rows=64):
    """All rows in one group, a page a picture."""
    images = [{"bytes": png(i, 32), "path": None} for i in range(rows)]
    table = pa.table({"image": pa.array(images, IMAGE), "text": [f"row {i}" for i in range(rows)]})
    write("one_group.parquet", table, data_page_size=1, write_batch_size=1, use_dictionary=False, compression="none",
          write_statistics=False)


for make in (hugging_face, dictionaries, nested, one_group):
    make()
