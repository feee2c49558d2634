// What torch's fmt does not inline, compiled once: with FMT_HEADER_ONLY it cost every file of the torch half
// six seconds.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
template FMT_API locale_ref::locale_ref(const std::locale& locale);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
namespace detail {
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API void buffer<char>::append(const char* begin, const char* end);
}  // namespace detail
FMT_END_NAMESPACE
