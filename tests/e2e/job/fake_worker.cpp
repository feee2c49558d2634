#include "tests/e2e/job/fake_worker.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chiliad/base/json_text.h"
#include "chiliad/checkpoint/snapshot.h"
#include "chiliad/io/file.h"
#include "chiliad/ipc/channel.h"
#include "chiliad/ipc/child_process.h"
#include "chiliad/ipc/progress_page.h"
#include "chiliad/observe/metrics.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::test {
namespace {

constexpr int kNumSlots = 2;
constexpr int64_t kRowsPerRank = 4;

struct Plan {
  std::string what;
  int rank = -1;
  int64_t step = -1;
};

Plan read_plan() {
  Plan plan;
  const char* text = std::getenv("CHILIAD_FAKE_WORKER");
  if (text == nullptr || *text == '\0') return plan;
  const std::string given = text;
  const size_t first = given.find(':');
  const size_t second = given.find(':', first + 1);
  plan.what = given.substr(0, first);
  plan.rank = std::stoi(given.substr(first + 1, second - first - 1));
  plan.step = std::stoll(given.substr(second + 1));
  return plan;
}

class FakeWorker {
 public:
  explicit FakeWorker(std::map<std::string, std::string> arguments)
      : arguments_(std::move(arguments)),
        file_(spec::read_run_file(arguments_.at("--run-file"), {})),
        plan_(read_plan()),
        rank_(std::stoi(arguments_.at("--rank"))),
        world_(std::stoi(arguments_.at("--world"))),
        channel_(UniqueFd(std::stoi(arguments_.at("--channel")))),
        page_(ipc::ProgressPage::map(UniqueFd(std::stoi(arguments_.at("--progress"))))),
        values_(kRowsPerRank),
        ring_(checkpoint::SnapshotRing::create(kNumSlots,
                                               checkpoint::SnapshotRing::slot_bytes_for(boxes(), 1024))) {}

  int run() {
    channel_.send(ipc::FrameType::kHello, fmt::format("{{\"pid\":{}}}", ::getpid()));
    channel_.send(ipc::FrameType::kRing, "{\"slots\":2}", ring_.fd());
    int64_t step = 0;
    if (arguments_.contains("--resume")) step = resumed_step();
    while (step < file_.run.steps && !stopped_) {
      page_.set({.step = step, .phase = ipc::Phase::kForward, .slot = 0, .instruction = 0});
      act_at(step);
      ++step;
      std::fill(values_.begin(), values_.end(), static_cast<float>(step));
      say_metrics(step);
      const bool last = step == file_.run.steps;
      const bool due = file_.checkpoint.every > 0 && step % file_.checkpoint.every == 0;
      take_frames(Nanoseconds(0));
      stopped_ = stop_asked_ && step > plan_.step;  // real workers agree on the step by a collective
      if (last || due || stopped_) snapshot(step);
    }
    channel_.send(ipc::FrameType::kFinished,
                  fmt::format(R"({{"step":{},"reason":"{}"}})", step, stopped_ ? "stopped" : "done"));
    return 0;
  }

 private:
  [[nodiscard]] int64_t resumed_step() const {
    const auto name = std::filesystem::path(arguments_.at("--resume")).filename().string();  // step-N.gG
    return std::stoll(name.substr(5));
  }

  [[nodiscard]] std::vector<checkpoint::OwnedBox> boxes() const {
    checkpoint::OwnedBox box;
    box.section = "model";
    box.name = "w";
    box.dtype = DType::kF32;
    box.shape = Shape{kRowsPerRank * world_};
    box.box = Box::rows(box.shape, kRowsPerRank * rank_, kRowsPerRank);
    box.data = reinterpret_cast<const std::byte*>(values_.data());
    return {box};
  }

  [[noreturn]] static void wait_for_ever() {
    while (true) ::pause();
  }

  void act_at(int64_t step) {
    if (step != plan_.step) return;
    const bool mine = plan_.rank == rank_;
    if (plan_.what == "kill") {
      if (mine) std::raise(SIGKILL);
      wait_for_ever();
    }
    if (plan_.what == "hang") wait_for_ever();
    if (plan_.what == "error" && mine) {
      channel_.send(
          ipc::FrameType::kError,
          fmt::format(R"({{"kind":"corrupt_data","place":"a.tar","message":"torn","step":{}}})", step));
      ::_exit(3);
    }
    if (plan_.what == "sample" && mine) {
      const auto samples = std::filesystem::path(arguments_.at("--run-dir")) / "samples";
      io::make_folders(samples);
      io::write_atomic(samples / fmt::format("step-{}.png", step), std::string_view("a picture"));
    }
    if (plan_.what == "term") {
      if (mine) ::kill(::getppid(), SIGTERM);
      while (!stop_asked_) take_frames(std::chrono::seconds(1));
    }
  }

  void say_metrics(int64_t step) {
    observe::StepMetrics metrics;
    metrics.step = step;
    metrics.steps = file_.run.steps;
    metrics.rank = rank_;
    if (rank_ == 0) channel_.send(ipc::FrameType::kMetrics, metrics.to_json());
  }

  void snapshot(int64_t step) {
    while (std::find(free_.begin(), free_.end(), true) == free_.end()) take_frames(std::chrono::seconds(1));
    const auto slot = static_cast<int>(std::find(free_.begin(), free_.end(), true) - free_.begin());
    free_[static_cast<size_t>(slot)] = false;
    ring_.write(slot, step, rank_, fmt::format(R"({{"step":{}}})", step), boxes());
    if (plan_.what == "unreported" && plan_.step == step) unreported(step);
    channel_.send(ipc::FrameType::kSnapshot, fmt::format(R"({{"step":{},"slot":{}}})", step, slot));
  }

  /// The others have written theirs before this rank dies.
  [[noreturn]] void unreported(int64_t step) {
    const std::filesystem::path folder = arguments_.at("--run-dir");
    const auto mark = [&](int rank) { return folder / fmt::format("written-{}-{}", rank, step); };
    if (plan_.rank != rank_) {
      io::write_atomic(mark(rank_), std::string_view("yes"));
      wait_for_ever();
    }
    for (int rank = 0; rank < world_; ++rank) {
      while (rank != rank_ && !std::filesystem::exists(mark(rank))) ::poll(nullptr, 0, 1);
    }
    std::raise(SIGKILL);
    wait_for_ever();
  }

  void take_frames(Nanoseconds deadline) {
    while (auto frame = channel_.receive(deadline)) {
      if (frame->type == ipc::FrameType::kStop) stop_asked_ = true;
      if (frame->type == ipc::FrameType::kSlotFree) {
        free_[parse_json<nlohmann::json>(frame->body).at("slot").get<size_t>()] = true;
      }
      deadline = Nanoseconds(0);
    }
  }

  std::map<std::string, std::string> arguments_;
  spec::RunFile file_;
  Plan plan_;
  int rank_;
  int world_;
  ipc::Channel channel_;
  ipc::ProgressPage page_;
  std::vector<float> values_;
  checkpoint::SnapshotRing ring_;
  std::vector<bool> free_ = std::vector<bool>(kNumSlots, true);
  bool stop_asked_ = false;
  bool stopped_ = false;
};

}  // namespace

int fake_worker_main(int argc, char** argv) {
  std::map<std::string, std::string> arguments;
  for (int i = 2; i + 1 < argc; i += 2) arguments[argv[i]] = argv[i + 1];
  ipc::die_with_parent(std::stoi(arguments.at("--parent")));
  return FakeWorker(std::move(arguments)).run();
}

}  // namespace chiliad::test
