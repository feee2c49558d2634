#include "chiliad/supervise/launch/persister.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <utility>

#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"
#include "chiliad/checkpoint/commit.h"

namespace chiliad::supervise {
namespace {

constexpr size_t kQueueCapacity = 64;  // more than the slots of any ring

}  // namespace

Persister::Persister(Options options)
    : options_(std::move(options)),
      event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      tasks_(kQueueCapacity),
      thread_([this] { run(); }) {}

Persister::~Persister() {
  tasks_.close();
  thread_.join();
}

void Persister::submit(Task task) {
  const bool taken = tasks_.push(std::move(task));
  CHILIAD_CHECK(taken, "the persister is closed");
}

std::vector<Persister::Result> Persister::take_results() {
  uint64_t count = 0;
  [[maybe_unused]] const auto ignored = ::read(event_.get(), &count, sizeof(count));
  std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

void Persister::run() {
  while (true) {
    const auto task = tasks_.pop(std::chrono::seconds(3600));
    if (!task.has_value()) {
      if (tasks_.closed() && tasks_.size() == 0) return;
      continue;
    }
    auto result = persist(*task);
    {
      std::lock_guard lock(mutex_);
      results_.push_back(std::move(result));
    }
    const uint64_t one = 1;
    [[maybe_unused]] const auto ignored = ::write(event_.get(), &one, sizeof(one));
  }
}

Persister::Result Persister::persist(const Task& task) const {
  const SystemClock clock;
  const auto start = clock.now();
  Result result;
  result.snapshot = task.snapshot;
  try {
    const auto num_ranks = static_cast<int>(task.rings.size());
    checkpoint::CheckpointWriter writer(options_.folder, task.snapshot.step, num_ranks, options_.config);
    try {
      for (size_t rank = 0; rank < task.rings.size(); ++rank) {
        writer.write_rank(task.rings[rank]->read(task.snapshot.slots[rank]));
      }
      writer.commit();
    } catch (...) {
      writer.abandon();
      throw;
    }
    result.path = writer.path().string();
  } catch (const std::exception& error) {
    result.problem = error.what();
    return result;
  }
  result.seconds = to_seconds(clock.now() - start);
  try {
    checkpoint::prune(options_.folder, options_.keep);
  } catch (const std::exception& error) {
    result.warning = error.what();
  }
  return result;
}

}  // namespace chiliad::supervise
