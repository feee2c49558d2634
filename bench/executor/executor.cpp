// What an instruction of a step's program costs beside what it does: the executor, the time account, the
// progress page.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/ipc/progress_page.h"
#include "chiliad/observe/time_account.h"
#include "chiliad/schedule/executor.h"

namespace {

using namespace chiliad;

class IdleStage final : public schedule::Stage {
 public:
  void load(int32_t) override {}
  void forward(int32_t, int32_t) override {}
  void loss(int32_t) override {}
  void backward(int32_t, int32_t) override {}
  void reduce(int32_t) override {}
  void await_reduce(int32_t) override {}
  void agree() override {}
  void optimize(int32_t) override {}
  void gather(int32_t) override {}
  void await_gather(int32_t) override {}
  void unshard(int32_t) override {}
  void await_unshard(int32_t) override {}
  void reshard(int32_t) override {}
  void reduce_replicas(int32_t) override {}
  void await_reduce_replicas(int32_t) override {}
  void sum_replicated() override {}
};

/// What a worker does around each instruction.
class Bookkeeper final : public schedule::Watcher {
 public:
  void before(int32_t index, const schedule::Instruction& instruction) override {
    page_.set({1, ipc::Phase::kForward, instruction.slot, index, instruction.layer, 1,
               schedule::op_name(instruction.op)});
    scope_.emplace(account_, observe::Row::kForward);
  }
  void after(int32_t, const schedule::Instruction&) override { scope_.reset(); }

 private:
  SystemClock clock_;
  observe::TimeAccount account_{clock_};
  ipc::ProgressPage page_ = ipc::ProgressPage::create();
  std::optional<observe::TimeAccount::Scope> scope_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  constexpr int kRounds = 200;
  constexpr double kTarget = 20.0;
  const auto program = schedule::make_program({.num_layers = 60, .num_slots = 8, .sharded = true});
  IdleStage stage;
  Bookkeeper bookkeeper;
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    schedule::execute(program, stage, bookkeeper);
    const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - start;
    times.push_back(passed.count() / static_cast<double>(program.instructions.size()));
  }
  const double value = median(times);
  fmt::print(
      "{{\"bench\":\"executor\",\"metric\":\"instruction\",\"value\":{:.4f},\"unit\":\"us\",\"target\":{},"
      "\"ok\":{}}}\n",
      value, kTarget, value <= kTarget);
  return 0;
}
