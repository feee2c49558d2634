#include <utility>

#include "chiliad/text/detail/steps.h"
#include "chiliad/text/detail/unicode.h"

namespace chiliad::text::detail {
namespace {

std::string apply(const NormalizerStep& step, std::string text) {
  using Kind = NormalizerStep::Kind;
  switch (step.kind) {
    case Kind::kNfc:
      return to_normal_form(NormalForm::kC, std::move(text));
    case Kind::kNfd:
      return to_normal_form(NormalForm::kD, std::move(text));
    case Kind::kNfkc:
      return to_normal_form(NormalForm::kKc, std::move(text));
    case Kind::kNfkd:
      return to_normal_form(NormalForm::kKd, std::move(text));
    case Kind::kLowercase:
      return lower_case(text);
    case Kind::kReplace:
      return step.pattern.replace_all(text, step.content);
    case Kind::kPrepend:
      return text.empty() ? text : step.content + text;
  }
  return text;
}

}  // namespace

std::string normalize(const std::vector<NormalizerStep>& steps, std::string text) {
  for (const NormalizerStep& step : steps) text = apply(step, std::move(text));
  return text;
}

}  // namespace chiliad::text::detail
