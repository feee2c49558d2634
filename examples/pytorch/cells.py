# Cells for a notebook or an editor that knows `# %%`. They may be run in any order after the first, interrupted, and run again.
# %% An index of the pictures where they lie; quick when it is there
import chiliad

index = chiliad.build_index("/usr/share/tuxpaint/stamps", "stamps.index")
index

# %% What an epoch will hold, before anything is read
loader = chiliad.Loader(index, batch=32, resolution=64, flip=True)
print(loader.plan.table())

# %% A look at a batch
batch = next(iter(loader))
print(batch["pixels"].shape, batch["captions"][:3])

# %% An epoch. Interrupt it and run the cell again: it goes on with the next batch
for batch in loader:
    brightness = batch["pixels"].mean()

# %% From the begin, with other settings: the old loader's threads end when its name does
loader = chiliad.Loader(index, batch=64, resolution=32)
first = [batch["keys"] for _, batch in zip(range(3), loader)]

# %% Exactly there again
loader.seek(0)
assert [batch["keys"] for _, batch in zip(range(3), loader)] == first
