#!/usr/bin/env python3
"""A plain PyTorch training script whose DataLoader is Chiliad's loader: a small network learns to clean noisy pictures.

    python train.py --index INDEX                                  one process
    torchrun --nproc-per-node 2 train.py --index INDEX             several; the same items, the same losses
    ... --stop-after 20, then again without it, at any number of processes: goes on where it was

Only the lines with a comment "chiliad" differ from a script with a Dataset, a DistributedSampler and a DataLoader.
"""

import argparse
import os
import pathlib

import torch
import torch.nn as nn

import chiliad  # chiliad: in place of torch.utils.data


def make_model():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.SiLU(), nn.Conv2d(32, 32, 3, padding=1), nn.SiLU(), nn.Conv2d(32, 3, 3, padding=1)
    )


def noise_like(pixels, draw_keys):
    """Each item's own noise, by its key: the same in every process and after every resume."""
    noise = torch.empty_like(pixels)
    for row, key in enumerate(draw_keys.tolist()):
        noise[row].normal_(generator=torch.Generator().manual_seed(key))
    return noise


def loss_of(model, batch):
    """Sum over this process's items; those that could not be read have weight 0."""
    pixels = torch.from_dlpack(batch["pixels"])  # chiliad: uint8 [B, H, W, 3], the loader's memory
    weight = torch.from_dlpack(batch["weight"])
    clean = pixels.permute(0, 3, 1, 2).float() / 127.5 - 1.0
    noisy = clean + 0.5 * noise_like(clean, batch["draw_key"])
    errors = (model(noisy) - clean).square().mean(dim=(1, 2, 3))
    return (errors * weight).sum()


def save(path, model, optimizer, loader):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
    torch.save(state, f"{path}.tmp")
    os.replace(f"{path}.tmp", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", required=True, help="folder made by chiliad.build_index or `chiliad data index`")
    parser.add_argument("--checkpoint", type=pathlib.Path, default="pytorch.pt")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64, help="items a step, over all processes")
    parser.add_argument("--resolution", type=int, default=32)
    parser.add_argument("--stop-after", type=int, default=0, help="save and stop after so many steps; 0: never")
    arguments = parser.parse_args()

    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world_size > 1:
        torch.distributed.init_process_group("gloo")
    torch.manual_seed(1)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    loader = chiliad.Loader(  # chiliad
        arguments.index,
        batch=arguments.batch,
        resolution=arguments.resolution,
        flip=True,
        epochs=arguments.epochs,
        rank=rank,
        world_size=world_size,
    )
    if arguments.checkpoint.exists():
        state = torch.load(arguments.checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        loader.load_state_dict(state["loader"])  # chiliad: at any number of processes

    step_loss, stop = torch.zeros(()), False
    while not stop and loader.epoch < arguments.epochs:
        for batch in loader:
            loss = loss_of(model, batch) / batch["num_items"]  # chiliad: of the step, over all processes
            loss.backward()
            step_loss += loss.detach()
            if batch["slot"] + 1 < batch["num_slots"]:
                continue  # chiliad: another shape of the same step follows
            if world_size > 1:
                for tensor in [step_loss, *(p.grad for p in model.parameters())]:
                    torch.distributed.all_reduce(tensor)
            optimizer.step()
            optimizer.zero_grad()
            if rank == 0:
                print(f"epoch {batch['epoch']} step {batch['step']} loss {step_loss.item():.6f}", flush=True)
            step_loss.zero_()
            stop = arguments.stop_after > 0 and batch["step"] + 1 >= arguments.stop_after
            if stop:
                break
    if rank == 0:
        save(arguments.checkpoint, model, optimizer, loader)
    loader.close()
    if world_size > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
