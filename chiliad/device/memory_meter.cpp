#include "chiliad/device/memory_meter.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <atomic>
#include <mutex>
#include <new>

namespace chiliad::device {

struct MemoryMeter::Count {
  std::atomic<int64_t> live{0};
  std::atomic<int64_t> peak{0};
};

namespace {

using Count = MemoryMeter::Count;

thread_local std::shared_ptr<Count> current;

/// Stands before the memory of a tensor.
struct Header {
  std::shared_ptr<Count> count;  // null: not counted
  int64_t bytes;
};
constexpr size_t kHeaderBytes = 64;  // keeps the alignment of tensors
static_assert(sizeof(Header) <= kHeaderBytes);

void add(Count& count, int64_t bytes) {
  const int64_t live = count.live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = count.peak.load(std::memory_order_relaxed);
  while (live > peak && !count.peak.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

void free_counted(void* data) {
  if (data == nullptr) return;
  void* base = static_cast<std::byte*>(data) - kHeaderBytes;
  auto* header = static_cast<Header*>(base);
  if (header->count != nullptr) header->count->live.fetch_sub(header->bytes, std::memory_order_relaxed);
  header->~Header();
  c10::free_cpu(base);
}

/// All memory has a header, also that of threads without a meter: raw memory is freed without knowing whose
/// it was. Data and context are one pointer, which raw memory needs, too.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, nullptr, &free_counted, cpu};
    void* base = c10::alloc_cpu(bytes + kHeaderBytes);
    new (base) Header{current, static_cast<int64_t>(bytes)};
    if (current != nullptr) add(*current, static_cast<int64_t>(bytes));
    void* data = static_cast<std::byte*>(base) + kHeaderBytes;
    return {data, data, &free_counted, cpu};
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &free_counted; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    static CountingAllocator allocator;
    c10::SetCPUAllocator(&allocator, 1);
  });
}

}  // namespace

MemoryMeter::MemoryMeter() : count_(std::make_shared<Count>()), before_(std::move(current)) {
  install();
  current = count_;
}

MemoryMeter::~MemoryMeter() {
  current = std::move(before_);
}

int64_t MemoryMeter::live_bytes() const {
  return count_->live.load(std::memory_order_relaxed);
}

int64_t MemoryMeter::peak_bytes() const {
  return count_->peak.load(std::memory_order_relaxed);
}

void MemoryMeter::reset_peak() {
  count_->peak.store(live_bytes(), std::memory_order_relaxed);
}

}  // namespace chiliad::device
