#include "chiliad/base/unique_fd.h"

#include <unistd.h>

namespace chiliad {

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace chiliad
