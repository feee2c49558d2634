#pragma once

#include <cstdint>
#include <vector>

#include "chiliad/parallel/mesh.h"
#include "chiliad/spec/layer_table.h"

namespace chiliad::parallel {

/// A run of a layer's flat buffer that is one box of one logical parameter.
struct Piece {
  const spec::ParamDecl* param = nullptr;  ///< with its logical shape
  int64_t offset = 0;                      ///< in the run that the piece belongs to
  int64_t count = 0;
  Box box;                  ///< in the logical parameter
  bool replicated = false;  ///< every tensor-parallel rank has a copy
};

/// How a layer's parameters lie on one rank. The flat buffer holds the local parameters (what tensor
/// parallelism leaves to this rank) one after the other. It is cut at row borders into one *shard* for each
/// rank of dp_shard, and each shard into one *owned* run for each replica: the part whose optimizer state
/// this rank has.
class LayerLayout {
 public:
  /// whole: with logical shapes; outlives the layout.
  LayerLayout(const spec::LayerDecl& whole, const MeshShape& shape, const MeshPlace& place);

  [[nodiscard]] int64_t num_params() const { return cuts_.back(); }
  [[nodiscard]] int64_t shard_begin() const { return shard_begin_; }
  [[nodiscard]] int64_t shard_size() const { return shard_end_ - shard_begin_; }
  /// Where the owned run begins in the shard.
  [[nodiscard]] int64_t owned_begin() const { return owned_begin_; }
  [[nodiscard]] int64_t owned_size() const { return owned_size_; }
  [[nodiscard]] const std::vector<int64_t>& shard_sizes() const { return shard_sizes_; }
  /// Of the owned runs in this rank's shard, by replica.
  [[nodiscard]] const std::vector<int64_t>& owned_sizes() const { return owned_sizes_; }
  [[nodiscard]] const std::vector<Piece>& shard_pieces() const { return shard_pieces_; }
  [[nodiscard]] const std::vector<Piece>& owned_pieces() const { return owned_pieces_; }

 private:
  [[nodiscard]] std::vector<Piece> pieces_of(const spec::LayerDecl& local, int64_t begin, int64_t end) const;

  const spec::LayerDecl& whole_;
  MeshShape shape_;
  MeshPlace place_;
  std::vector<int64_t> cuts_;
  int64_t shard_begin_ = 0;
  int64_t shard_end_ = 0;
  int64_t owned_begin_ = 0;
  int64_t owned_size_ = 0;
  std::vector<int64_t> shard_sizes_;
  std::vector<int64_t> owned_sizes_;
  std::vector<Piece> shard_pieces_;
  std::vector<Piece> owned_pieces_;
};

}  // namespace chiliad::parallel
