#include "chiliad/checkpoint/snapshot.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/units.h"
#include "chiliad/checkpoint/detail/fields.h"
#include "chiliad/checkpoint/detail/positional.h"

namespace chiliad::checkpoint {
namespace {

using detail::Fields;
using detail::Json;

static_assert(std::endian::native == std::endian::little, "the ring is little-endian");

constexpr uint64_t kMagic = 0x474E'4952'4B48'4343ULL;  // "CCHKRING"
constexpr uint32_t kVersion = 1;
constexpr int64_t kDataAlignment = 64;
constexpr int64_t kSlotAlignment = 4096;
constexpr int kMaxSlots = 63;
constexpr int64_t kCopyBytes = 256 * kKiB;  // hashed, then copied while still in the cache

enum SlotState : uint64_t { kEmpty = 0, kWriting = 1, kComplete = 2 };

/// The first 64 bytes.
struct RingHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t num_slots;
  uint64_t slot_bytes;
  uint64_t reserved[5];
};
static_assert(sizeof(RingHeader) == 64);

/// One a slot, after the ring's header.
struct SlotHeader {
  std::atomic<uint64_t> state;
  std::atomic<int64_t> step;
  uint32_t rank;
  uint32_t reserved;
  uint64_t table_at;
  uint64_t table_bytes;
  uint64_t table_hash;
  uint64_t reserved_end[2];
};
static_assert(sizeof(SlotHeader) == 64);

int64_t align_up(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

RingHeader* header_of(const ipc::SharedMemory& memory) {
  return std::launder(reinterpret_cast<RingHeader*>(memory.bytes().data()));
}

SlotHeader* slot_header(const ipc::SharedMemory& memory, int slot) {
  std::byte* start =
      memory.bytes().data() + sizeof(RingHeader) + static_cast<size_t>(slot) * sizeof(SlotHeader);
  return std::launder(reinterpret_cast<SlotHeader*>(start));
}

int64_t box_bytes(const OwnedBox& box) {
  return box.box.count() * dtype_bytes(box.dtype);
}

Json table_entry(const OwnedBox& box, int64_t at, uint64_t digest) {
  return {{"section", box.section},
          {"name", box.name},
          {"dtype", std::string(dtype_name(box.dtype))},
          {"shape", box.shape.sizes()},
          {"offset", box.box.offset.sizes()},
          {"size", box.box.size.sizes()},
          {"at", at},
          {"digest", detail::hex64_text(digest)}};
}

/// Copies a box and returns the digest of its source.
uint64_t copy_box(const OwnedBox& box, std::byte* out) {
  detail::PositionalHasher hasher(box.dtype, box.shape, box.box);
  const int64_t total = box_bytes(box);
  for (int64_t done = 0; done < total; done += kCopyBytes) {
    const auto part = static_cast<size_t>(std::min(kCopyBytes, total - done));
    hasher.add({box.data + done, part});
    std::memcpy(out + done, box.data + done, part);
  }
  return hasher.digest();
}

void check_room(int64_t needed, std::span<const std::byte> slot) {
  CHILIAD_CHECK(needed <= static_cast<int64_t>(slot.size()), "a snapshot needs {} bytes, its slot has {}",
                needed, slot.size());
}

/// A range that the table gives, checked against the slot.
std::span<std::byte> checked_range(const Fields& fields, std::span<std::byte> slot, int64_t at,
                                   int64_t bytes) {
  const auto size = static_cast<int64_t>(slot.size());
  if (at < 0 || bytes < 0 || at > size || bytes > size - at) {
    fields.refuse(fmt::format("bytes {} to {} are outside of the slot of {} bytes", at, at + bytes, size));
  }
  return slot.subspan(static_cast<size_t>(at), static_cast<size_t>(bytes));
}

OwnedBox box_of(const Json& entry, const std::string& place, std::span<std::byte> slot) {
  const Fields fields(entry, place);
  OwnedBox box;
  box.section = fields.text("section");
  box.name = fields.text("name");
  box.dtype = fields.dtype("dtype");
  box.shape = fields.shape("shape");
  box.box = {fields.shape("offset"), fields.shape("size")};
  const auto count = box.shape.checked_count();
  if (!count.has_value() || *count > detail::kMaxNumber || !box.box.inside(box.shape)) {
    fields.refuse(
        fmt::format("{}: box {} is not inside of {}", box.name, box.box.to_string(), box.shape.to_string()));
  }
  const int64_t at = fields.integer("at", 0, detail::kMaxNumber);
  if (at % kDataAlignment != 0) fields.refuse(fmt::format("{}: at: {} is not aligned", box.name, at));
  box.data = checked_range(fields, slot, at, box_bytes(box)).data();
  return box;
}

}  // namespace

uint64_t positional_digest(DType dtype, const Shape& shape, const Box& box, const std::byte* data) {
  detail::PositionalHasher hasher(dtype, shape, box);
  hasher.add({data, static_cast<size_t>(box.count() * dtype_bytes(dtype))});
  return hasher.digest();
}

SnapshotRing SnapshotRing::create(int num_slots, int64_t slot_bytes) {
  CHILIAD_CHECK_GE(num_slots, 1);
  CHILIAD_CHECK_LE(num_slots, kMaxSlots);
  CHILIAD_CHECK_GE(slot_bytes, 1);
  const int64_t bytes = align_up(slot_bytes, kSlotAlignment);
  const auto total = static_cast<size_t>(kSlotAlignment + num_slots * bytes);
  SnapshotRing ring(ipc::SharedMemory::create("chiliad-snapshots", total));
  std::byte* start = ring.memory_.bytes().data();
  new (start)
      RingHeader{kMagic, kVersion, static_cast<uint32_t>(num_slots), static_cast<uint64_t>(bytes), {}};
  for (int slot = 0; slot < num_slots; ++slot) {
    auto* header =
        new (start + sizeof(RingHeader) + static_cast<size_t>(slot) * sizeof(SlotHeader)) SlotHeader{};
    header->step.store(-1);
  }
  ring.num_slots_ = num_slots;
  ring.slot_bytes_ = bytes;
  return ring;
}

SnapshotRing SnapshotRing::map(UniqueFd fd) {
  SnapshotRing ring(ipc::SharedMemory::map(std::move(fd)));
  const auto size = static_cast<uint64_t>(ring.memory_.bytes().size());
  const std::string place = "snapshot ring";
  if (size < kSlotAlignment)
    throw CorruptData(place, fmt::format("has {} bytes, expected at least {}", size, kSlotAlignment));
  const RingHeader& header = *header_of(ring.memory_);
  if (header.magic != kMagic) throw CorruptData(place, "the magic number is missing");
  if (header.version != kVersion) {
    throw CorruptData(place, fmt::format("version: expected {}, got {}", kVersion, header.version));
  }
  if (header.num_slots < 1 || header.num_slots > kMaxSlots) {
    throw CorruptData(place, fmt::format("slots: expected 1 to {}, got {}", kMaxSlots, header.num_slots));
  }
  const uint64_t room = size - kSlotAlignment;
  if (header.slot_bytes % kSlotAlignment != 0 || room % header.num_slots != 0 ||
      header.slot_bytes != room / header.num_slots) {
    throw CorruptData(place, fmt::format("{} slots of {} bytes do not fill {} bytes", header.num_slots,
                                         header.slot_bytes, size));
  }
  ring.num_slots_ = static_cast<int>(header.num_slots);
  ring.slot_bytes_ = static_cast<int64_t>(header.slot_bytes);
  return ring;
}

int64_t SnapshotRing::slot_bytes_for(std::span<const OwnedBox> boxes, int64_t state_bytes) {
  constexpr int64_t kTableFrame = 256;  // braces, keys of the state, numbers at their longest
  int64_t bytes = align_up(state_bytes, kDataAlignment) + kTableFrame;
  for (const OwnedBox& box : boxes) {
    bytes += align_up(box_bytes(box), kDataAlignment);
    bytes += static_cast<int64_t>(json_text(table_entry(box, INT64_MAX, 0)).size()) + 1;
  }
  return align_up(bytes, kSlotAlignment);
}

void SnapshotRing::write(int slot, int64_t step, int rank, const std::string& state,
                         std::span<const OwnedBox> boxes) {
  const std::span<std::byte> data = slot_data(slot);
  SlotHeader& header = *slot_header(memory_, slot);
  header.state.store(kWriting, std::memory_order_relaxed);
  header.step.store(-1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // nothing below may be seen before the mark

  int64_t at = 0;
  Json entries = Json::array();
  for (const OwnedBox& box : boxes) {
    check_room(at + box_bytes(box), data);
    entries.push_back(table_entry(box, at, copy_box(box, data.data() + at)));
    at += align_up(box_bytes(box), kDataAlignment);
  }
  const auto state_bytes = static_cast<int64_t>(state.size());
  const Json table{{"boxes", std::move(entries)},
                   {"state_at", at},
                   {"state_bytes", state_bytes},
                   {"state_hash", detail::hex64_text(hash64(state))}};
  const std::string text = json_text(table);
  const int64_t table_at = at + align_up(state_bytes, kDataAlignment);
  check_room(table_at + static_cast<int64_t>(text.size()), data);
  std::memcpy(data.data() + at, state.data(), state.size());
  std::memcpy(data.data() + table_at, text.data(), text.size());
  header.rank = static_cast<uint32_t>(rank);
  header.table_at = static_cast<uint64_t>(table_at);
  header.table_bytes = text.size();
  header.table_hash = hash64(text);
  header.step.store(step, std::memory_order_relaxed);
  header.state.store(kComplete, std::memory_order_release);
}

SnapshotRing::View SnapshotRing::read(int slot) const {
  const std::span<std::byte> data = slot_data(slot);
  const SlotHeader& header = *slot_header(memory_, slot);
  const std::string place = fmt::format("snapshot slot {}", slot);
  if (header.state.load(std::memory_order_acquire) != kComplete) throw CorruptData(place, "is incomplete");
  const uint64_t table_at = header.table_at;
  const uint64_t table_bytes = header.table_bytes;
  if (table_at > data.size() || table_bytes > data.size() - table_at) {
    throw CorruptData(place, "the table is outside of the slot");
  }
  const std::string text(reinterpret_cast<const char*>(data.data()) + table_at, table_bytes);
  if (hash64(text) != header.table_hash) throw CorruptData(place, "the table does not have its checksum");

  const Json table = detail::parse_object(place, text);
  const Fields fields(table, place);
  View view;
  view.step = header.step.load(std::memory_order_relaxed);
  view.rank = static_cast<int>(header.rank);
  const auto state = checked_range(fields, data, fields.integer("state_at", 0, detail::kMaxNumber),
                                   fields.integer("state_bytes", 0, detail::kMaxNumber));
  view.state.assign(reinterpret_cast<const char*>(state.data()), state.size());
  if (hash64(view.state) != fields.hex64("state_hash"))
    throw CorruptData(place, "the state does not have its checksum");
  for (const Json& entry : fields.array("boxes")) {
    OwnedBox box = box_of(entry, place, data);
    const uint64_t expected = Fields(entry, place).hex64("digest");
    const uint64_t actual = positional_digest(box.dtype, box.shape, box.box, box.data);
    if (actual != expected) {
      throw CorruptData(place, fmt::format("{}/{}: expected digest {:016x}, got {:016x}", box.section,
                                           box.name, expected, actual));
    }
    view.boxes.push_back(std::move(box));
    view.digests.push_back(expected);
  }
  return view;
}

int64_t SnapshotRing::complete_step(int slot) const {
  CHILIAD_CHECK_GE(slot, 0);
  CHILIAD_CHECK_LT(slot, num_slots_);
  const SlotHeader& header = *slot_header(memory_, slot);
  return header.state.load(std::memory_order_acquire) == kComplete
             ? header.step.load(std::memory_order_relaxed)
             : -1;
}

std::span<std::byte> SnapshotRing::slot_data(int slot) const {
  CHILIAD_CHECK_GE(slot, 0);
  CHILIAD_CHECK_LT(slot, num_slots_);
  return memory_.bytes().subspan(static_cast<size_t>(kSlotAlignment + slot * slot_bytes_),
                                 static_cast<size_t>(slot_bytes_));
}

}  // namespace chiliad::checkpoint
