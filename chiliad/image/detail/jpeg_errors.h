#pragma once

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

namespace chiliad::image::detail {

/// What libjpeg's `err` points to while a function of ours that called setjmp(back) uses the library. No
/// objects with destructors may live there: the library leaves by longjmp.
struct JpegErrors {
  jpeg_error_mgr base;
  jmp_buf back;
  char reason[JMSG_LENGTH_MAX];
};

/// For base.error_exit: keeps the reason and leaves.
[[noreturn]] inline void give_up(j_common_ptr info) {
  auto& errors = *reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors.reason);
  std::longjmp(errors.back, 1);
}

}  // namespace chiliad::image::detail
