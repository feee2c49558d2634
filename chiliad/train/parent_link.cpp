#include "chiliad/train/parent_link.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/log.h"

namespace chiliad::train {
namespace {
constexpr int kParentGone = 4;
}

ParentLink::ParentLink(ipc::Channel channel)
    : channel_(std::move(channel)), listener_([this] { listen(); }) {}

ParentLink::~ParentLink() {
  finishing_ = true;
  if (listener_.joinable()) listener_.join();
}

void ParentLink::on_slot_free(std::function<void(int, int64_t, bool)> callback) {
  std::lock_guard lock(mutex_);
  slot_free_ = std::move(callback);
}

void ParentLink::listen() {
  while (!finishing_) {
    try {
      auto frame = channel_.receive(std::chrono::milliseconds(50));
      if (frame.has_value()) handle(*frame);
    } catch (const std::exception& error) {
      if (finishing_) return;
      log_error("the parent has gone ({}); leaving", error.what());
      ::_exit(kParentGone);
    }
  }
}

void ParentLink::handle(const ipc::Frame& frame) {
  switch (frame.type) {
    case ipc::FrameType::kStop:
      stop_ = true;
      return;
    case ipc::FrameType::kJournalDone: {
      std::lock_guard lock(mutex_);
      ++journal_acks_;
      changed_.notify_all();
      return;
    }
    case ipc::FrameType::kSlotFree: {
      const auto body = parse_json<nlohmann::json>(frame.body);
      std::lock_guard lock(mutex_);
      if (slot_free_) {
        slot_free_(body.at("slot").get<int>(), body.value("step", int64_t{-1}),
                   body.value("committed", false));
      }
      return;
    }
    default:
      log_warn("the parent sent a frame of unknown type {}", static_cast<uint32_t>(frame.type));
  }
}

void ParentLink::make_durable(const std::string& amendments, Nanoseconds deadline) {
  std::unique_lock lock(mutex_);
  const int64_t before = journal_acks_;
  channel_.send(ipc::FrameType::kJournal, amendments);
  if (!changed_.wait_for(lock, deadline, [&] { return journal_acks_ > before; })) {
    throw PeerLost("journal", "the parent did not make the amendments durable in time");
  }
}

void ParentLink::finish() {
  finishing_ = true;
  on_slot_free({});
}

}  // namespace chiliad::train
