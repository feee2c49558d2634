#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/base/dtype.h"
#include "chiliad/base/shape.h"
#include "chiliad/ipc/shared_memory.h"

namespace chiliad::checkpoint {

/// A box of a logical tensor that this rank owns, and where its values are. Values are row-major and
/// contiguous.
struct OwnedBox {
  std::string section;  ///< model, optim, ema: a folder of the checkpoint
  std::string name;     ///< of the logical tensor
  DType dtype = DType::kF32;
  Shape shape;  ///< of the whole tensor
  Box box;
  const std::byte* data = nullptr;
};

/// Positional digest of a box: the sum mod 2^64 over its elements of hash(global element index, bits).
/// Independent of the order of evaluation and additive over disjoint boxes, so a tensor has one digest in
/// every layout.
[[nodiscard]] uint64_t positional_digest(DType dtype, const Shape& shape, const Box& box,
                                         const std::byte* data);

/// Slots of snapshot memory shared by a worker and its parent. A slot is written by the worker and read by
/// the parent after its kSnapshot frame; it is written again only after kSlotFree. Layout:
/// docs/formats/snapshot.md.
class SnapshotRing {
 public:
  [[nodiscard]] static SnapshotRing create(int num_slots, int64_t slot_bytes);
  [[nodiscard]] static SnapshotRing map(UniqueFd fd);

  /// Bytes that a slot needs for these boxes and a state of `state_bytes`.
  [[nodiscard]] static int64_t slot_bytes_for(std::span<const OwnedBox> boxes, int64_t state_bytes);

  /// Copies boxes and state into a slot: 1. mark it incomplete  2. copy, computing each digest from the
  /// source
  /// 3. mark it complete. Throws InternalError if it does not fit (the slot stays incomplete). `state` is
  /// JSON (cursor, journal, random state, schedule), the same on every rank.
  void write(int slot, int64_t step, int rank, const std::string& state, std::span<const OwnedBox> boxes);

  struct View {
    int64_t step = 0;
    int rank = 0;
    std::string state;
    std::vector<OwnedBox> boxes;    ///< data points into the ring
    std::vector<uint64_t> digests;  ///< as computed from the source
  };
  /// The slot's snapshot. Throws CorruptData if it is incomplete or a box's digest does not match its bytes.
  [[nodiscard]] View read(int slot) const;
  /// Whether a slot holds a complete snapshot, and of which step (-1: none).
  [[nodiscard]] int64_t complete_step(int slot) const;

  [[nodiscard]] int num_slots() const { return num_slots_; }
  [[nodiscard]] int fd() const { return memory_.fd(); }

 private:
  explicit SnapshotRing(ipc::SharedMemory memory) : memory_(std::move(memory)) {}
  [[nodiscard]] std::span<std::byte> slot_data(int slot) const;

  ipc::SharedMemory memory_;
  int num_slots_ = 0;  // as checked at map(): the shared header may be overwritten by a peer gone wild
  int64_t slot_bytes_ = 0;
};

}  // namespace chiliad::checkpoint
