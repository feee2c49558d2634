#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "chiliad/base/bounded_queue.h"
#include "chiliad/base/unique_fd.h"
#include "chiliad/checkpoint/snapshot.h"
#include "chiliad/supervise/launch/job_machine.h"

namespace chiliad::supervise {

/// Writes snapshots to disk on its own thread, one after the other, and commits them. A failure (a full disk)
/// costs that checkpoint and nothing else.
class Persister {
 public:
  struct Options {
    std::filesystem::path folder;
    std::string config;  ///< resolved run file
    int64_t keep = 2;
  };
  struct Task {
    SnapshotSet snapshot;
    std::vector<const checkpoint::SnapshotRing*> rings;  ///< [rank]; they live until the result is there
  };
  struct Result {
    SnapshotSet snapshot;
    std::string path;     ///< of the committed checkpoint
    std::string problem;  ///< why it was not committed; empty: it was
    std::string warning;  ///< older ones could not be removed
    double seconds = 0.0;
  };

  explicit Persister(Options options);
  ~Persister();
  Persister(const Persister&) = delete;
  Persister& operator=(const Persister&) = delete;

  void submit(Task task);
  /// Results since the last call. `fd` is readable while there are some.
  [[nodiscard]] std::vector<Result> take_results();
  [[nodiscard]] int fd() const { return event_.get(); }

 private:
  void run();
  [[nodiscard]] Result persist(const Task& task) const;

  Options options_;
  UniqueFd event_;
  BoundedQueue<Task> tasks_;
  std::mutex mutex_;  // guards results_
  std::vector<Result> results_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace chiliad::supervise
