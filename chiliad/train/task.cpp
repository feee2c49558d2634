#include "chiliad/train/task.h"

namespace chiliad::train {

std::unique_ptr<Task> make_task(const spec::RunFile& run, layers::TensorParallel ranks,
                                const loader::RunInputs& inputs) {
  if (spec::is_language_model(run.model)) return make_language_task(run, ranks);
  if (spec::is_latent_diffusion(run.model)) return make_latent_task(run, inputs.columns);
  if (spec::is_autoencoder(run.model)) return make_autoencoder_task(run);
  return make_flow_task(run, ranks);
}

double item_weights(const loader::Batch& batch) {
  double weight = 0.0;
  for (const auto& item : batch.items) weight += static_cast<double>(item.weight);
  return weight;
}

}  // namespace chiliad::train
