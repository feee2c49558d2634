#pragma once

#include <cstdint>
#include <string>

namespace chiliad::spec {

/// Section `store`: data that lies in an object store or on a web server, and the cache of this machine.
struct StoreOptions {
  std::string folder;                 ///< of the block cache; needed where the data is remote
  int64_t bytes = int64_t{64} << 30;  ///< of the block cache
  double deadline_s = 240.0;          ///< trouble of the store that lasts longer ends the job
  double stall_s = 10.0;             ///< an answer without a byte for so long is given up and asked for again
  int64_t connections = 16;          ///< requests at once, at most
  double requests_per_second = 0.0;  ///< 0: no limit
};

}  // namespace chiliad::spec
