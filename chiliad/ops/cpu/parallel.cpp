#include "chiliad/ops/cpu/parallel.h"

#include <malloc.h>
#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

namespace chiliad::ops::cpu {
namespace {

constexpr size_t kHugePage = 2 << 20;

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};

struct Slot {
  std::unique_ptr<float, Free> memory;
  int64_t count = 0;
};

bool known_to_win() {
  const char* wish = std::getenv("CHILIAD_FP32_KERNELS");
  if (wish != nullptr) return *wish == '1';
  __builtin_cpu_init();
  return __builtin_cpu_is("amd") != 0;
}

std::atomic<bool>& fp32_products() {
  static std::atomic<bool> own{known_to_win()};
  return own;
}

}  // namespace

bool has_kernels() {
  static const bool has = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0 &&
                          __builtin_cpu_supports("avx512dq") != 0 &&
                          std::getenv("CHILIAD_PLAIN_OPS") == nullptr;
  return has;
}

bool multiplies_bf16() {
  return __builtin_cpu_supports("avx512bf16") != 0;
}

bool takes_fp32() {
  return fp32_products().load(std::memory_order_relaxed);
}

void set_fp32_products(const std::string& who) {
  fp32_products() = who == "own" || (who == "known" && known_to_win());
}

void for_each_part(int64_t count, const std::function<void(int64_t)>& work) {
  const auto threads = static_cast<int>(std::min<int64_t>(omp_get_max_threads(), count));
  if (threads <= 1 || omp_in_parallel() != 0) {
    for (int64_t i = 0; i < count; ++i) work(i);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < count; ++i) work(i);
}

void keep_freed_memory() {
  constexpr int kLargest = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_TRIM_THRESHOLD, kLargest);
}

float* scratch(int slot, int64_t count) {
  thread_local std::array<Slot, kScratchSlots> slots;
  Slot& mine = slots[static_cast<size_t>(slot)];
  if (mine.count < count) {
    mine.memory.reset();
    const size_t wanted = static_cast<size_t>(count) * sizeof(float);
    const size_t page = wanted >= kHugePage ? kHugePage : 64;
    const size_t bytes = (wanted + page - 1) / page * page;
    mine.memory.reset(static_cast<float*>(std::aligned_alloc(page, bytes)));
    if (!mine.memory) throw std::bad_alloc();
    if (page == kHugePage) madvise(mine.memory.get(), bytes, MADV_HUGEPAGE);  // fewer misses of the TLB
    mine.count = count;
  }
  return mine.memory.get();
}

}  // namespace chiliad::ops::cpu
