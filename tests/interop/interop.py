"""Weights to and from diffusers and transformers: interop.py FAMILY --bin BIN --data TEST_DATA.

A tiny run is trained and exported; the library loads it (no key missing, none unexpected) and gives the same outputs for
fixed inputs. Back: random weights that the library saves, in several files, give the same outputs with us, are imported
as a checkpoint, and `ckpt diff` finds no difference. Exit code 77: the libraries are not there.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import diffusers
    import numpy
    import torch
    import transformers
    from PIL import Image
    from safetensors.torch import load_file, save_file
except ImportError as error:
    print(f"skipped: this Python has no {error.name}")
    sys.exit(77)

# Two implementations in fp32: the parity tests measure 1e-6, a changed formula shows from 1e-3.
TOLERANCE = 3e-5
LATENT = {"dit", "pixart", "sd3", "flux"}
LANGUAGE = {"llama", "qwen2"}
CLASSES = {
    "dit": diffusers.DiTTransformer2DModel,
    "pixart": diffusers.PixArtTransformer2DModel,
    "sd3": diffusers.SD3Transformer2DModel,
    "flux": diffusers.FluxTransformer2DModel,
    "autoencoder": diffusers.AutoencoderKL,
    "llama": transformers.LlamaForCausalLM,
    "qwen2": transformers.Qwen2ForCausalLM,
}
MODELS = {
    "dit": "patch: 2, latent_channels: 4, latent_pixels: 4, sample_size: 8, classes: 5, learned_variance: true",
    "pixart": "patch: 2, latent_channels: 4, latent_pixels: 4, text_channels: 36, text_max_tokens: 24, sample_size: 8, "
              "size_conditions: true",
    "sd3": "patch: 2, latent_channels: 4, latent_pixels: 4, text_channels: 36, text_max_tokens: 24, sample_size: 8, "
           "max_positions: 16, pooled_channels: 36, qk_norm: true",
    "flux": "patch: 2, latent_channels: 4, latent_pixels: 4, text_channels: 36, text_max_tokens: 24, single_depth: 1, "
            "pooled_channels: 36, rope_axes: [8, 8, 8]",
    "llama": "kv_heads: 1, mlp_width: 40, vocabulary: 258, attention_bias: true",
    "qwen2": "kv_heads: 1, mlp_width: 40, vocabulary: 258, tied: true",
}


class Test:
    def __init__(self, family, programs, data, folder):
        self.family, self.programs, self.data, self.folder = family, programs, data, folder
        torch.manual_seed(7)

    def call(self, program, *arguments):
        done = subprocess.run([self.programs / program, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder)
        if done.returncode != 0:
            sys.exit(f"{program} {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    # --- a tiny run ---

    def write_data(self):
        source = self.folder / "source"
        source.mkdir()
        draw = numpy.random.default_rng(7)
        if self.family in LANGUAGE:
            lines = [json.dumps({"text": f"document {i}: " + "word " * int(draw.integers(3, 12))}) for i in range(16)]
            (source / "documents.jsonl").write_text("\n".join(lines) + "\n")
            return
        for i in range(12):
            noise = draw.integers(0, 60, (32, 32 + 8 * (i % 3), 3))
            slope = numpy.linspace(0, 180, noise.shape[1])[None, :, None]
            Image.fromarray((noise + slope).astype("uint8")).save(source / f"p{i}.png")
            (source / f"p{i}.txt").write_text(str(i % 5) if self.family == "dit" else f"picture {i}")

    def write_encoders(self):
        kit = self.data / "golden"
        shutil.copytree(kit / "vae_three_stages", self.folder / "vae")
        text = self.folder / "text"
        text.mkdir()
        for name in ("config.json", "model.safetensors"):
            shutil.copy(kit / "bert_encoder" / name, text)
        shutil.copy(kit / "tokenizers" / "wordpiece_uncased" / "tokenizer.json", text)

    def run_file(self):
        head = "version: 1\nrun: {seed: 7, steps: 3, dir: run}\noptimizer: {lr: 1.0e-3}\ncheckpoint: {every: 3}\n"
        if self.family == "autoencoder":
            return head + ("model: {family: autoencoder, stage_channels: [16, 32], layers_per_stage: 1, norm_groups: 8}\n"
                           "objective: {kind: reconstruction}\n"
                           "data: {index: index, batch: 4, resolution: 32, languages: [], micro_batch_items: 2}\n")
        model = f"model: {{family: {self.family}, width: 48, depth: 2, heads: 2, {MODELS[self.family]}}}\n"
        if self.family in LANGUAGE:
            return head + model + ("data: {index: index, mode: pack, batch: 4, sequence_length: 64, "
                                   "micro_batch_tokens: 96}\n")
        objective = "{kind: ddpm, prediction: noise}" if self.family == "dit" else "{kind: flow, prediction: velocity}"
        text = "" if self.family == "dit" else ", text: text"
        return head + model + (f"objective: {objective}\nencoders: {{pictures: vae{text}, batch: 3}}\n"
                               "data: {index: index, batch: 4, resolution: 32, bucket_min: 16, bucket_max: 64, "
                               "micro_batch_items: 2, max_bad_fraction: 1.0}\n")

    def train(self):
        self.write_data()
        (self.folder / "run.yaml").write_text(self.run_file())
        self.call("chiliad", "data", "index", "source", "--out", "index", "--quiet")
        if self.family in LATENT:
            self.write_encoders()
            self.call("chiliad", "encode", "run.yaml", "--quiet")
        self.call("chiliad", "train", "run.yaml", "--quiet")
        self.call("chiliad", "ckpt", "export", "run", "--to", "exported", "--quiet")

    # --- outputs ---

    def inputs(self):
        if self.family in LANGUAGE:
            return {"tokens": torch.randint(0, 256, (21,))}
        if self.family == "autoencoder":
            return {"pixels": torch.rand(2, 3, 16, 24) * 2 - 1, "latents": torch.randn(2, 4, 8, 12)}
        inputs = {"latents": torch.randn(2, 4, 8, 8), "time": torch.tensor([250.0, 700.0])}
        if self.family == "dit":
            return {**inputs, "labels": torch.tensor([1, 4])}
        inputs["text"] = torch.randn(2, 9, 36)
        if self.family == "pixart":
            mask = torch.ones(2, 9, dtype=torch.bool)
            mask[1, 5:] = False
            size = torch.tensor([[32.0, 32.0], [48.0, 32.0]])
            return {**inputs, "text_mask": mask, "resolution": size, "aspect_ratio": size[:, :1] / size[:, 1:]}
        return {**inputs, "pooled": torch.randn(2, 36)}

    @torch.no_grad()
    def theirs(self, model, inputs):
        model = model.eval()
        if self.family in LANGUAGE:
            return {"logits": model(inputs["tokens"][None]).logits[0]}
        if self.family == "autoencoder":
            encoded = model.encode(inputs["pixels"]).latent_dist
            return {"mean": encoded.mean, "logvar": encoded.logvar, "pixels": model.decode(inputs["latents"]).sample}
        x, time = inputs["latents"], inputs["time"]
        if self.family == "dit":
            return {"prediction": model(x, timestep=time.long(), class_labels=inputs["labels"]).sample}
        if self.family == "pixart":
            sizes = {"resolution": inputs["resolution"], "aspect_ratio": inputs["aspect_ratio"]}
            return {"prediction": model(x, encoder_hidden_states=inputs["text"], timestep=time, added_cond_kwargs=sizes,
                                        encoder_attention_mask=inputs["text_mask"]).sample}
        if self.family == "sd3":
            return {"prediction": model(x, encoder_hidden_states=inputs["text"], pooled_projections=inputs["pooled"],
                                        timestep=time).sample}
        rows, columns = x.shape[2] // 2, x.shape[3] // 2
        packed = x.view(2, 4, rows, 2, columns, 2).permute(0, 2, 4, 1, 3, 5).reshape(2, rows * columns, 16)
        places = torch.zeros(rows, columns, 3)
        places[..., 1] = torch.arange(rows)[:, None]
        places[..., 2] = torch.arange(columns)[None, :]
        out = model(packed, encoder_hidden_states=inputs["text"], pooled_projections=inputs["pooled"], timestep=time / 1000,
                    img_ids=places.view(-1, 3), txt_ids=torch.zeros(inputs["text"].shape[1], 3)).sample
        unpacked = out.view(2, rows, columns, 4, 2, 2).permute(0, 3, 1, 4, 2, 5).reshape(x.shape)
        return {"prediction": unpacked}

    def ours(self, folder, inputs):
        kind = "language" if self.family in LANGUAGE else "autoencoder" if self.family == "autoencoder" else "diffusion"
        save_file({name: value.contiguous() for name, value in inputs.items()}, self.folder / "inputs.safetensors")
        self.call("interop-forward", kind, folder, "inputs.safetensors", "outputs.safetensors")
        return load_file(self.folder / "outputs.safetensors")

    def compare(self, what, model, folder):
        inputs = self.inputs()
        theirs, ours = self.theirs(model, inputs), self.ours(folder, inputs)
        for name, value in theirs.items():
            largest = value.abs().max().item()
            apart = (ours[name] - value).abs().max().item() / largest
            print(f"{self.family}, {what}: {name}: {apart:.1e} of the largest value ({largest:.2g})")
            if not (largest > 0 and apart < TOLERANCE):
                sys.exit(f"{self.family}, {what}: {name}: expected outputs within {TOLERANCE}, got {apart}")

    # --- there and back ---

    def there(self):
        model, report = CLASSES[self.family].from_pretrained(self.folder / "exported", output_loading_info=True)
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            if report[kind]:
                sys.exit(f"{self.family}: the library reports {kind}: {sorted(report[kind])[:5]}")
        self.compare("exported by us", model, "exported")
        return model

    def back(self, model):
        """Random values in all weights, also in those that start at zero."""
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.05)
        if self.family == "dit":  # the embedders of published files are copies of one
            first = model.transformer_blocks[0].norm1.emb.state_dict()
            for block in model.transformer_blocks:
                block.norm1.emb.load_state_dict(first)
        model.save_pretrained(self.folder / "theirs", max_shard_size="60KB", safe_serialization=True)
        self.compare("saved by the library", model, "theirs")
        self.call("chiliad", "ckpt", "import", "theirs", "--run", "run.yaml", "--set", "run.dir=imported", "--quiet")
        self.call("chiliad", "ckpt", "diff", "imported", "theirs")
        self.call("chiliad", "train", "run.yaml", "--set", "run.dir=imported", "--set", "run.steps=1", "--quiet")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("family", choices=sorted(CLASSES))
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        test = Test(arguments.family, arguments.bin.resolve(), arguments.data.resolve(), pathlib.Path(folder))
        test.train()
        test.back(test.there())


main()
