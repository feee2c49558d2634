#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace chiliad::ops::cpu {

/// True where this processor runs the kernels of this folder (AVX-512). Elsewhere operators are made of
/// ATen's.
[[nodiscard]] bool has_kernels();

/// Whether the processor multiplies bf16 itself.
[[nodiscard]] bool multiplies_bf16();

/// Whether fp32 operators take them, too. As set_fp32_products says: `own`, `library`, or `known` (at first):
/// on AMD, where ATen's library (MKL) makes products at half the rate; on Intel it makes them faster than
/// ours. CHILIAD_FP32_KERNELS=1 or 0 stands for own or library in place of known.
[[nodiscard]] bool takes_fp32();
void set_fp32_products(const std::string& who);

/// Calls work(i) for i in [0, count) on the compute threads (device::set_compute_threads), each a run of
/// neighbours. `work` throws nothing.
void for_each_part(int64_t count, const std::function<void(int64_t)>& work);

/// From now on memory that is freed stays with the process and is used again: a step's tensors are the same
/// every time, and each page that goes to the system and back costs a fault. Raises the resident size towards
/// the largest that it has been.
void keep_freed_memory();

/// fp32 memory of this thread, aligned to 64 bytes, kept for the next call with the same slot.
/// slot: below kScratchSlots.
inline constexpr int kScratchSlots = 12;
[[nodiscard]] float* scratch(int slot, int64_t count);

}  // namespace chiliad::ops::cpu
