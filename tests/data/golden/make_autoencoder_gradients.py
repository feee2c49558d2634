"""Expected gradients of AutoencoderKL, which the golden kit does not have, and a small variant of its own.

Needs torch, diffusers and safetensors: python make_autoencoder_gradients.py
- vae_sd/gradients.safetensors: of the kit's model, reconstruction by |difference|
- vae_three_stages/: three stages, two layers, no attention, quant_conv alone; reconstruction by difference^2
Loss: the mean over items of (sum of errors + KL_WEIGHT * KL) / values of a picture; KL summed over latent values.
"""

import json
import pathlib

import torch
from diffusers import AutoencoderKL
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).parent
KL_WEIGHT = 0.1


def loss_of(model, pixels, noise, power):
    posterior = model.encode(pixels).latent_dist
    rebuilt = model.decode(posterior.mean + posterior.std * noise).sample
    errors = (rebuilt - pixels).abs().pow(power).sum(dim=(1, 2, 3))
    losses = (errors + KL_WEIGHT * posterior.kl()) / pixels[0].numel()
    return losses, rebuilt, posterior


def gradients(model, inputs, power):
    losses, rebuilt, posterior = loss_of(model, inputs["pixels"], inputs["noise"], power)
    losses.mean().backward()
    found = {"grad." + name: parameter.grad for name, parameter in model.named_parameters()}
    found |= {"item_losses": losses, "reconstruction": rebuilt, "mean": posterior.mean, "logvar": posterior.logvar}
    return {name: value.detach().contiguous() for name, value in found.items()}


def three_stages():
    torch.manual_seed(7)
    model = AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * 3,
        up_block_types=("UpDecoderBlock2D",) * 3,
        block_out_channels=(8, 12, 16),
        layers_per_block=2,
        latent_channels=4,
        norm_num_groups=4,
        sample_size=16,
        use_quant_conv=True,
        use_post_quant_conv=False,
        mid_block_add_attention=False,
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    inputs = {"pixels": torch.randn(2, 3, 20, 28).clamp(-1, 1), "noise": torch.randn(2, 4, 5, 7)}
    folder = HERE / "vae_three_stages"
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config.pop("_name_or_path", None)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    save_file(inputs, folder / "inputs.safetensors")
    save_file(gradients(model, inputs, 2), folder / "expected.safetensors")


def main():
    folder = HERE / "vae_sd"
    model = AutoencoderKL.from_pretrained(folder)
    save_file(gradients(model, load_file(folder / "inputs.safetensors"), 1), folder / "gradients.safetensors")
    three_stages()


main()
