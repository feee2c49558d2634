#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace chiliad::comm::detail {

/// Sleeps until `word` is no longer `seen`, at most 20 ms. Works between processes.
inline void futex_sleep(const std::atomic<uint32_t>& word, uint32_t seen) {
  const timespec limit{0, 20'000'000};
  ::syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), FUTEX_WAIT, seen, &limit, nullptr, 0);
}

inline void futex_wake_all(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace chiliad::comm::detail
