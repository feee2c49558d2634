#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "chiliad/store/block.h"

namespace chiliad::store::detail {

/// A part of a block that somebody wants to read.
struct WantedFrame {
  BlockSpec spec;
  int64_t from = 0;  ///< in the object
  int64_t length = 0;
};
/// The answer, with a descriptor.
struct BlockFrame {
  int64_t start = 0;   ///< place in the object of the descriptor's first byte
  int64_t length = 0;  ///< bytes of the object that it holds
  int64_t lease = 0;   ///< the number that releases a block of the cache; 0: only what was wanted, no block
};

[[nodiscard]] std::string write_frame(const WantedFrame& frame);
[[nodiscard]] std::string write_frame(const BlockFrame& frame);
[[nodiscard]] std::string write_hello(int64_t held_bytes);
[[nodiscard]] std::string write_error(const std::exception& error);
/// These throw CorruptData.
[[nodiscard]] WantedFrame read_wanted(const std::string& body);
[[nodiscard]] BlockFrame read_block(const std::string& body);
[[nodiscard]] int64_t read_hello(const std::string& body);
/// Throws the error that the frame carries.
[[noreturn]] void throw_frame(const std::string& body);

}  // namespace chiliad::store::detail
