#pragma once

#include <cstdint>
#include <vector>

#include "chiliad/planner/activation_memory.h"
#include "chiliad/planner/detail/tape.h"

namespace chiliad::planner::detail {

/// The layers of a rank with what each needs for one micro-batch; from it the memory for any choice of modes.
class Timeline {
 public:
  Timeline(const spec::LayerTable& table, const spec::RunFile& file, const spec::BatchShape& shape);

  [[nodiscard]] ActivationMemory run(const RecomputeModes& modes) const;
  [[nodiscard]] size_t num_layers() const { return layers_.size(); }
  /// The first one with a backward.
  [[nodiscard]] size_t first_trained() const { return first_trained_; }
  [[nodiscard]] const LayerMemory& layer(size_t index) const { return layers_[index]; }

 private:
  /// An entry from the layer that writes it to the next one that does.
  struct Entry {
    int64_t bytes = 0;
    size_t last_reader = 0;  // its writer where nobody reads it
  };

  void find_entries(const spec::LayerTable& table);
  [[nodiscard]] int64_t forward(const RecomputeModes& modes, ActivationMemory& memory) const;
  void backward(const RecomputeModes& modes, int64_t live, ActivationMemory& memory) const;

  std::vector<LayerMemory> layers_;
  std::vector<std::vector<Entry>> written_;  // [layer][write]
  std::vector<int64_t> output_gradients_;    // of each layer, of the entries that are read
  std::vector<int64_t> new_gradients_;       // of each layer: entries whose last reader it is
  size_t first_trained_ = 0;
  int64_t inputs_ = 0;
  int64_t loss_work_ = 0;
  int64_t loss_gradient_ = 0;
};

}  // namespace chiliad::planner::detail
