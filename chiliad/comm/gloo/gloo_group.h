#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>

#include "chiliad/comm/group.h"

namespace c10d {
class Store;
}

namespace chiliad::comm {

struct GlooOptions {
  std::string host;  ///< address of this rank that its peers reach
  Nanoseconds timeout;
};

/// A group over TCP whose ranks meet at `store`. Throws PeerLost after the deadline.
[[nodiscard]] std::unique_ptr<Group> make_gloo_group(c10::intrusive_ptr<c10d::Store> store,
                                                     Membership membership, const GlooOptions& options);

}  // namespace chiliad::comm
