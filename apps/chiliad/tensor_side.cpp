#include "apps/chiliad/tensor_side.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/weights/float_values.h"
#include "chiliad/weights/key_table.h"
#include "chiliad/weights/key_tables/model_keys.h"

namespace chiliad::cli {
namespace {

class CheckpointSide final : public TensorSide {
 public:
  CheckpointSide(const checkpoint::Checkpoint& from, bool model_only) : from_(from) {
    for (const auto& tensor : from.tensors()) {
      if (model_only && tensor.section != "model") continue;
      stored_.push_back(&tensor);
      tensors_.push_back(
          {tensor.section + "/" + tensor.name, tensor.dtype, tensor.shape, tensor.digest, "", 0});
    }
  }
  std::vector<float> read(const Tensor& tensor, const Box& box) const override {
    std::vector<float> values(static_cast<size_t>(box.count()));
    const auto place = static_cast<size_t>(&tensor - tensors_.data());
    from_.read(*stored_[place], box, std::as_writable_bytes(std::span(values)));
    return values;
  }
  bool is_comparable(DType dtype) const override { return dtype == DType::kF32; }

 private:
  const checkpoint::Checkpoint& from_;
  std::vector<const checkpoint::Checkpoint::Tensor*> stored_;
};

class FolderSide final : public TensorSide {
 public:
  FolderSide(const weights::WeightSource& from, std::vector<Tensor> tensors) : from_(from) {
    tensors_ = std::move(tensors);
  }
  std::vector<float> read(const Tensor& tensor, const Box& box) const override {
    std::vector<float> values(static_cast<size_t>(box.count()));
    const int64_t rows = tensor.shape.rank() == 0 ? 1 : tensor.shape[0];
    const int64_t row = tensor.shape.rank() == 0 ? 0 : box.offset[0];
    const int64_t row_values = rows == 0 ? 0 : tensor.shape.count() / rows;
    weights::read_floats(from_, tensor.key, tensor.first + row * row_values, values,
                         weights::Check::kNothing);
    return values;
  }
  bool is_comparable(DType dtype) const override {
    return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
  }

 private:
  const weights::WeightSource& from_;
};

}  // namespace

const TensorSide::Tensor* TensorSide::find(const std::string& name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const Tensor& tensor) { return tensor.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

std::unique_ptr<TensorSide> side_of(const checkpoint::Checkpoint& from, bool model_only) {
  return std::make_unique<CheckpointSide>(from, model_only);
}

std::unique_ptr<TensorSide> side_of(const weights::WeightSource& from) {
  std::vector<TensorSide::Tensor> tensors;
  for (const auto& entry : from.tensors())
    tensors.push_back({entry.name, entry.dtype, entry.shape, std::nullopt, entry.name, 0});
  return std::make_unique<FolderSide>(from, std::move(tensors));
}

std::unique_ptr<TensorSide> side_of(const weights::WeightSource& from,
                                    const checkpoint::Checkpoint& model_of) {
  const auto run = spec::parse_run_file(model_of.config(), model_of.path().string(), "run", {});
  const auto keys = weights::model_keys(run.model);
  std::map<std::string, Shape> shapes;  // ours
  for (const auto& parameter : weights::parameters_of(spec::make_layer_table(run.model)))
    shapes.emplace(parameter.name, parameter.shape);
  std::set<std::string> given;  // by a tensor that is no copy of another
  for (const auto& entry : from.tensors()) {
    for (const auto& key : keys.translate_all(entry.name))
      if (!key.is_alias) given.insert(key.name);
  }
  std::set<std::string> taken;
  std::vector<TensorSide::Tensor> tensors;
  for (const auto& entry : from.tensors()) {
    for (const auto& key : keys.translate_all(entry.name)) {
      const auto ours = shapes.find(key.name);
      if (key.is_alias && (given.contains(key.name) || taken.contains(key.name))) continue;
      if (ours == shapes.end() || !taken.insert(key.name).second) {
        tensors.push_back({entry.name, entry.dtype, entry.shape, std::nullopt, entry.name, 0});
        continue;
      }
      // A convolution of one pixel is a linear layer, and a fused tensor has several parameters.
      const bool fits = ours->second.count() * key.num_parts == entry.shape.count();
      tensors.push_back({"model/" + key.name, entry.dtype, fits ? ours->second : entry.shape, std::nullopt,
                         entry.name, fits ? key.part * ours->second.count() : 0});
    }
  }
  return std::make_unique<FolderSide>(from, std::move(tensors));
}

}  // namespace chiliad::cli
