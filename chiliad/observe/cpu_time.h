#pragma once

namespace chiliad::observe {

/// CPU seconds since the start, user and system.
[[nodiscard]] double process_cpu_seconds();  ///< of all threads of the process
[[nodiscard]] double thread_cpu_seconds();   ///< of the calling thread

}  // namespace chiliad::observe
