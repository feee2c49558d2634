#include "chiliad/supervise/launch/signal_watch.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace chiliad::supervise {

SignalWatch::SignalWatch() {
  sigset_t watched;
  ::sigemptyset(&watched);
  ::sigaddset(&watched, SIGINT);
  ::sigaddset(&watched, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &watched, &before_);
  fd_ = UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

SignalWatch::~SignalWatch() {
  (void)take();  // one that is still pending must not kill us now
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalWatch::take() {
  int count = 0;
  signalfd_siginfo info{};
  while (::read(fd_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) ++count;
  return count;
}

}  // namespace chiliad::supervise
