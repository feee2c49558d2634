#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chiliad/generate/sample.h"
#include "chiliad/index/index.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::generate {

struct RetrievalOptions {
  int num_captions = 64;
  int nearest = 10;
  uint64_t seed = 1;
  SamplerOptions sampler;
};

/// Does the model make what it was shown? For captions of training pictures a picture is generated; it counts
/// if a training picture with that caption is among its nearest training pictures (mean squared RGB distance
/// at 32 x 32).
struct RetrievalReport {
  int num_captions = 0;
  int num_pictures = 0;       ///< training pictures compared with
  double top = 0.0;           ///< fraction that counts
  double top_shuffled = 0.0;  ///< the same pictures held against each other's captions: about chance
  std::vector<std::string> captions;
  std::vector<HostArray> generated;
};

/// `plan` has the training set; each caption is generated in its picture's bucket.
[[nodiscard]] RetrievalReport evaluate_retrieval(const PictureMaker& maker, const index::Index& index,
                                                 const stepplan::Plan& plan, const RetrievalOptions& options,
                                                 const std::function<void(int64_t, int64_t)>& progress);

}  // namespace chiliad::generate
