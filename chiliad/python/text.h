#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace chiliad::python {

/// Names are bytes: what is not UTF-8 comes as in os.fsdecode.
inline nanobind::str text_of(std::string_view bytes) {
  PyObject* text =
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape");
  if (text == nullptr) throw nanobind::python_error();
  return nanobind::steal<nanobind::str>(text);
}

}  // namespace chiliad::python
