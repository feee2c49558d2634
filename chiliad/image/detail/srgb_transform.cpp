#include "chiliad/image/detail/srgb_transform.h"

#include <fmt/core.h>
#include <lcms2.h>
#include <lcms2_plugin.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::image::detail {
namespace {

// A table of 33^4 nodes, the largest in use, has 14 MB in single precision; damaged counts ask for more.
constexpr uint32_t kMaxAllocation = 64U << 20U;

void* allocate(cmsContext /*context*/, cmsUInt32Number size) {
  return size > kMaxAllocation ? nullptr : std::malloc(size);
}
void* reallocate(cmsContext /*context*/, void* memory, cmsUInt32Number size) {
  return size > kMaxAllocation ? nullptr : std::realloc(memory, size);
}
void release(cmsContext /*context*/, void* memory) {
  std::free(memory);
}

constexpr size_t kMaxReason = 120;

/// The first complaint counts: later ones follow from it.
void keep_reason(cmsContext context, cmsUInt32Number /*code*/, const char* text) {
  auto* reason = static_cast<std::string*>(cmsGetContextUserData(context));
  if (reason == nullptr || !reason->empty()) return;
  *reason = std::string(text).substr(0, kMaxReason);
  std::replace_if(
      reason->begin(), reason->end(), [](char c) { return c < 0x20 || c > 0x7e; }, ' ');
}

struct DeleteContext {
  using pointer = cmsContext;
  void operator()(cmsContext context) const { cmsDeleteContext(context); }
};
using Context = std::unique_ptr<cmsContext, DeleteContext>;

struct CloseProfile {
  using pointer = cmsHPROFILE;
  void operator()(cmsHPROFILE profile) const { cmsCloseProfile(profile); }
};
using Profile = std::unique_ptr<cmsHPROFILE, CloseProfile>;

/// reason: outlives the context, or null.
Context make_context(std::string* reason) {
  cmsPluginMemHandler memory{};
  memory.base = {cmsPluginMagicNumber, 2000, cmsPluginMemHandlerSig, nullptr};
  memory.MallocPtr = allocate;
  memory.FreePtr = release;
  memory.ReallocPtr = reallocate;
  Context context(cmsCreateContext(&memory, reason));
  CHILIAD_CHECK(context != nullptr, "lcms gave no context");
  cmsSetLogErrorHandlerTHR(context.get(), keep_reason);
  return context;
}

Profile open_profile(const Context& context, std::span<const std::byte> bytes) {
  return Profile(
      cmsOpenProfileFromMemTHR(context.get(), bytes.data(), static_cast<cmsUInt32Number>(bytes.size())));
}

cmsColorSpaceSignature space_of(Samples samples) {
  if (samples == Samples::kGrey) return cmsSigGrayData;
  return samples == Samples::kCmyk ? cmsSigCmykData : cmsSigRgbData;
}

/// A signature's four characters.
std::string name_of(uint32_t signature) {
  std::string name;
  for (int shift = 24; shift >= 0; shift -= 8) {
    const auto c = static_cast<char>(signature >> shift & 0xffU);
    name += c >= 0x20 && c <= 0x7e ? c : '?';
  }
  return name.substr(0, name.find_last_not_of(' ') + 1);
}

cmsUInt32Number format_of(Samples samples) {
  // The first of three like samples.
  if (samples == Samples::kGrey) return COLORSPACE_SH(PT_GRAY) | EXTRA_SH(2) | CHANNELS_SH(1) | BYTES_SH(1);
  return samples == Samples::kCmyk ? TYPE_CMYK_8_REV : TYPE_RGB_8;
}

using Colorants = std::array<double, 9>;  // X, Y, Z of red, green and blue, under D50

constexpr Colorants kSrgbColorants{0.4361, 0.2225, 0.0139, 0.3851, 0.7169, 0.0971, 0.1431, 0.0606, 0.7141};
constexpr Colorants kP3Colorants{0.5151, 0.2412, -0.0011, 0.2919, 0.6922, 0.0419, 0.1571, 0.0666, 0.7841};

bool has_colorants(cmsHPROFILE profile, const Colorants& expected) {
  constexpr double kTolerance = 0.002;  // writers round, and adapt white in their own way
  constexpr std::array kTags{cmsSigRedColorantTag, cmsSigGreenColorantTag, cmsSigBlueColorantTag};
  for (size_t i = 0; i < kTags.size(); ++i) {
    const auto* found = static_cast<const cmsCIEXYZ*>(cmsReadTag(profile, kTags[i]));
    if (found == nullptr) return false;
    const std::array<double, 3> values{found->X, found->Y, found->Z};
    for (size_t k = 0; k < 3; ++k) {
      if (!(std::abs(values[k] - expected[3 * i + k]) <= kTolerance)) return false;
    }
  }
  return true;
}

/// Whether each of 256 levels stays itself, before rounding, under sRGB's curve.
bool has_srgb_curves(cmsHPROFILE profile) {
  constexpr double kLevels = 255.0;
  constexpr double kTolerance = 0.75;
  for (const auto tag : {cmsSigRedTRCTag, cmsSigGreenTRCTag, cmsSigBlueTRCTag}) {
    const auto* curve = static_cast<const cmsToneCurve*>(cmsReadTag(profile, tag));
    if (curve == nullptr) return false;
    for (int level = 0; level < 256; ++level) {
      const double linear = cmsEvalToneCurveFloat(curve, static_cast<float>(level / kLevels));
      const double shown = linear <= 0.0031308 ? 12.92 * linear : 1.055 * std::pow(linear, 1 / 2.4) - 0.055;
      if (!(std::abs(shown * kLevels - level) <= kTolerance)) return false;
    }
  }
  return true;
}

}  // namespace

Samples samples_of(const Info& info) {
  if ((info.flags & kCmyk) != 0) return Samples::kCmyk;
  return (info.flags & kGrey) != 0 ? Samples::kGrey : Samples::kRgb;
}

std::unique_ptr<const SrgbTransform> SrgbTransform::make(std::span<const std::byte> bytes, Samples samples,
                                                         std::string& reason) {
  std::string complaint;
  Context context = make_context(&complaint);
  const auto refuse_profile = [&](const std::string& why) {
    reason = fmt::format("ICC profile: {}", complaint.empty() ? why : complaint);
    return nullptr;
  };
  const Profile profile = open_profile(context, bytes);
  if (profile == nullptr) return refuse_profile("cannot be read");
  const cmsColorSpaceSignature space = cmsGetColorSpace(profile.get());
  if (space != space_of(samples)) {
    return refuse_profile(
        fmt::format("is for {}, the picture is {}", name_of(space), name_of(space_of(samples))));
  }
  const Profile srgb(cmsCreate_sRGBProfileTHR(context.get()));
  CHILIAD_CHECK(srgb != nullptr, "lcms made no sRGB profile");
  cmsHTRANSFORM transform = cmsCreateTransformTHR(context.get(), profile.get(), format_of(samples),
                                                  srgb.get(), TYPE_RGB_8, INTENT_PERCEPTUAL, 0);
  if (transform == nullptr) return refuse_profile("gives no conversion");
  cmsSetLogErrorHandlerTHR(context.get(), nullptr);  // the text dies here
  return std::unique_ptr<const SrgbTransform>(new SrgbTransform(context.release(), transform));
}

SrgbTransform::~SrgbTransform() {
  cmsDeleteTransform(transform_);
  cmsDeleteContext(static_cast<cmsContext>(context_));
}

void SrgbTransform::convert(const uint8_t* from, uint8_t* to, int32_t count) const {
  cmsDoTransform(transform_, from, to, static_cast<cmsUInt32Number>(count));
}

uint16_t class_of_profile(std::span<const std::byte> bytes) {
  const Context context = make_context(nullptr);
  const Profile profile = open_profile(context, bytes);
  if (profile == nullptr) return kIccBroken;
  // Tables would be used in place of colorants and curves.
  if (cmsGetColorSpace(profile.get()) != cmsSigRgbData || cmsIsTag(profile.get(), cmsSigAToB0Tag) != 0)
    return kIccOther;
  if (has_colorants(profile.get(), kP3Colorants)) return kIccP3;
  const bool is_srgb = has_colorants(profile.get(), kSrgbColorants) && has_srgb_curves(profile.get());
  return is_srgb ? kIccSrgb : kIccOther;
}

}  // namespace chiliad::image::detail
