#include <map>
#include <mutex>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/comm/meeting.h"
#include "chiliad/comm/membership.h"
#include "chiliad/comm/shm/shm_group.h"

namespace chiliad::comm {
namespace {

/// The memory of every group, made by the member that comes first. All members use one mapping: a descriptor
/// and a mapping for each of hundreds of ranks would reach the limits of a process.
class Table {
 public:
  std::shared_ptr<const ipc::SharedMemory> open(const GroupRequest& request, int size) {
    const std::lock_guard lock(mutex_);
    Entry& entry = groups_[request.name];
    if (entry.memory == nullptr) {
      entry.memory = std::make_shared<const ipc::SharedMemory>(
          ipc::SharedMemory::create("group", shared_group_bytes(size, request)));
    }
    auto memory = entry.memory;
    if (++entry.num_opened == size) groups_.erase(request.name);  // nobody else will ask
    return memory;
  }

 private:
  struct Entry {
    std::shared_ptr<const ipc::SharedMemory> memory;  // shared with the groups, until the last is gone
    int num_opened = 0;
  };
  std::mutex mutex_;  // guards groups_
  std::map<std::string, Entry> groups_;
};

class InProcessMeeting final : public Meeting {
 public:
  InProcessMeeting(std::shared_ptr<Table> table, int rank, int size, Nanoseconds timeout)
      : table_(std::move(table)), rank_(rank), size_(size), timeout_(timeout) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  std::unique_ptr<Group> make_group(const GroupRequest& request) override {
    Membership membership = membership_of(request, rank_);
    if (membership.size() == 1) return make_solo_group();
    auto memory = table_->open(request, membership.size());
    return make_shared_memory_group(std::move(memory), std::move(membership), request.kept_bytes, timeout_);
  }
  void finish() override {}

 private:
  std::shared_ptr<Table> table_;  // shared by the meetings of one job, until the last is gone
  int rank_;
  int size_;
  Nanoseconds timeout_;
};

}  // namespace

std::vector<std::unique_ptr<Meeting>> meet_in_process(int size, Nanoseconds timeout) {
  auto table = std::make_shared<Table>();
  std::vector<std::unique_ptr<Meeting>> meetings;
  for (int rank = 0; rank < size; ++rank) {
    meetings.push_back(std::make_unique<InProcessMeeting>(table, rank, size, timeout));
  }
  return meetings;
}

}  // namespace chiliad::comm
