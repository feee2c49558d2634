#include <ATen/ATen.h>

#include "chiliad/base/error.h"
#include "chiliad/comm/group.h"

namespace chiliad::comm {
namespace {

class DoneWork final : public Work {
 public:
  void wait() override {}
};

class SoloGroup final : public Group {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }

  std::unique_ptr<Work> all_to_all(at::Tensor out, std::span<const int64_t> out_counts, at::Tensor in,
                                   std::span<const int64_t> in_counts) override {
    CHILIAD_CHECK_EQ(out_counts.size(), 1U);
    CHILIAD_CHECK_EQ(in_counts[0], out_counts[0]);
    out.copy_(in);
    return done();
  }
  std::unique_ptr<Work> all_gather(at::Tensor out, at::Tensor in) override {
    out.copy_(in);
    return done();
  }
  std::unique_ptr<Work> all_gather_parts(at::Tensor out, std::span<const int64_t> counts,
                                         at::Tensor in) override {
    CHILIAD_CHECK_EQ(out.numel(), counts[0]);
    if (out.const_data_ptr() != in.const_data_ptr()) out.copy_(in);
    return done();
  }
  [[nodiscard]] Traffic traffic() const override { return traffic_; }
  [[nodiscard]] Tier tier() const override { return Tier::kSelf; }
  void close() override {}

 private:
  std::unique_ptr<Work> done() {
    ++traffic_.num_calls;
    return std::make_unique<DoneWork>();
  }
  Traffic traffic_;
};

}  // namespace

std::unique_ptr<Group> make_solo_group() {
  return std::make_unique<SoloGroup>();
}

}  // namespace chiliad::comm
