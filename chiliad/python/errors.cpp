#include "chiliad/base/error.h"
#include "chiliad/python/bindings.h"

namespace nb = nanobind;

namespace chiliad::python {
namespace {

const char* class_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidInput:
      return "InputError";
    case ErrorKind::kUnavailable:
      return "UnavailableError";
    case ErrorKind::kCorruptData:
      return "CorruptDataError";
    case ErrorKind::kPeerLost:
      return "PeerLostError";
    default:
      return "InternalError";
  }
}

void translate(const std::exception_ptr& error, void* /*payload*/) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    const nb::object type = nb::module_::import_("chiliad._errors").attr(class_of(known.kind()));
    const nb::bytes text(known.what());  // file names in it need not be UTF-8
    const nb::bytes place(known.place().c_str());
    const nb::object made =
        type(text.attr("decode")("utf-8", "replace"), place.attr("decode")("utf-8", "replace"));
    PyErr_SetObject(type.ptr(), made.ptr());
  }
}

}  // namespace

void bind_errors(nb::module_& /*module*/) {
  nb::register_exception_translator(translate);
}

}  // namespace chiliad::python
