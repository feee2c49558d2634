#include "chiliad/spec/bucket_tables.h"
#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::data, Member>;

}  // namespace

Section data_section() {
  using O = DataOptions;
  using enum OnResume;
  return {
      "data",
      "Everything that decides which items a step holds, and how they are loaded.",
      {
          {"index", at<&O::index>, TextRule{.required = true, .unless = "sources"}, kFree,
           "folder made by `chiliad data index`, kept as written; may move, its identity is checked on "
           "resume"},
          {"sources", at<&O::sources>, SourcesRule{}, kFree,
           "instead of index: several of them, by weights (docs/guides/mixing.md); folders may move, all "
           "else is "
           "checked on resume"},
          {"mixing", at<&O::mixing>, ChoiceRule{{"weights", "size", "temperature", "concatenate"}}, kContent,
           "sources are drawn by their weights, their sizes, their sizes to the power mixing_alpha, or as if "
           "they were "
           "one data set"},
          {"mixing_alpha", at<&O::mixing_alpha>, NumberRule{0.0, 4.0, false, false}, kContent,
           "mixing temperature: 1 is as size, 0 all alike"},
          {"mode", at<&O::mode>, ChoiceRule{{"bucket", "pack", "pad"}}, kContent,
           "bucket: a micro-batch holds pictures of one shape; pack: documents, or latents of any shapes "
           "(dit, pixart, sd3, flux), one after another, without padding; pad: as if each were padded to the "
           "largest of its micro-batch, for `chiliad data plan` alone, which says what that costs"},
          {"tokenizer", at<&O::tokenizer>, TextRule{}, kFree,
           "documents: a tokenizer.json; may move, its identity is checked on resume; empty: bytes"},
          {"end_token", at<&O::end_token>, TextRule{}, kContent,
           "documents: content of the token behind each document, such as <|endoftext|>; empty: none (bytes "
           "have their own)"},
          {"sequence_length", at<&O::sequence_length>, WholeRule{1, 1 << 24}, kContent,
           "a document is cut to so many positions, each with the next token as its target"},
          {"batch", at<&O::batch>, WholeRule{1, 10'000'000}, kContent, "items a step, over all ranks"},
          {"buckets", at<&O::buckets>, ChoiceRule{bucket_table_names()}, kContent,
           "shapes of pictures: auto, kohya (sd-scripts), made from resolution and bucket_*; or a table of "
           "NovelAI, PixArt, Open-Sora (opensora: those of 1024, 512 and 256 together)"},
          {"bucket_choice", at<&O::bucket_choice>, ChoiceRule{{"auto", "ratio", "linear", "most_pixels"}},
           kContent,
           "which shape a picture takes: auto: as the authors of `buckets` do; ratio: nearest by the "
           "logarithm "
           "of width / height; linear: by width / height; most_pixels: the one that keeps most of its pixels "
           "and cuts off at most max_crop"},
          {"max_crop", at<&O::max_crop>, NumberRule{0.0, 1.0, false, false}, kContent,
           "bucket_choice most_pixels: part of a picture that may be cut off"},
          {"bucket_no_upscale", at<&O::bucket_no_upscale>, BoolRule{}, kContent,
           "buckets auto and kohya: pictures are only made smaller, to at most resolution * resolution "
           "pixels, "
           "and each side is cut to a multiple of bucket_step"},
          {"resolution", at<&O::resolution>, WholeRule{1, 65536}, kContent,
           "buckets hold about resolution * resolution pixels"},
          {"bucket_step", at<&O::bucket_step>, WholeRule{1, 4096}, kContent,
           "sides are multiples of it; a multiple of model.patch"},
          {"bucket_min", at<&O::bucket_min>, WholeRule{1, 65536}, kContent,
           "shortest side; a multiple of bucket_step"},
          {"bucket_max", at<&O::bucket_max>, WholeRule{1, 65536}, kContent,
           "longest side; a multiple of bucket_step"},
          {"stages", at<&O::stages>, StagesRule{}, kFree,
           "other shapes from later steps on, such as [{from: 10000, resolution: 512, bucket_max: 1024}]: "
           "buckets, resolution, bucket_step, bucket_min, bucket_max, micro_batch_items; what a stage leaves "
           "out is as here (docs/guides/buckets.md); all but micro_batch_items is checked on resume"},
          {"max_aspect_error", at<&O::max_aspect_error>, NumberRule{0.0, 10.0, false, false}, kContent,
           "items whose abs(ln(ratio / bucket ratio)) is above it are dropped and counted; 0: none"},
          {"languages", at<&O::languages>,
           TextListRule{R"(^[A-Za-z][A-Za-z0-9_-]{0,31}$)", "language tags such as en or pt-BR", true},
           kContent,
           "captions to draw from, per item among those that it has; []: pictures are trained without "
           "captions (autoencoder), or all (documents)"},
          {"limit", at<&O::limit>, WholeRule{0, INT64_MAX}, kContent,
           "use only so many items of the index, by a keyed choice; 0: all"},
          {"held_out", at<&O::held_out>, WholeRule{0, INT64_MAX}, kContent,
           "items of the index, by a keyed choice, that training never shows: evaluation takes its losses "
           "over "
           "them"},
          {"order", at<&O::order>, ChoiceRule{{"window", "full", "sequential"}}, kContent,
           "window: permuted blocks, then inside a window; full: all items permuted; sequential: as indexed"},
          {"window_blocks", at<&O::window_blocks>, WholeRule{1, 1'000'000}, kContent, "blocks of a window"},
          {"shape_clusters", at<&O::shape_clusters>, WholeRule{1, 4096}, kContent,
           "1: no clustering; N: the steps of a window draw from N groups of shapes"},
          {"packs", at<&O::packs>, TextRule{}, kFree,
           "mode pack: a file of `chiliad data pack`; `batch` counts its packs then; may move, its identity "
           "is checked on resume; empty: rows are packed step by step"},
          {"flip", at<&O::flip>, BoolRule{}, kContent, "random horizontal flip"},
          {"crop", at<&O::crop>, ChoiceRule{{"center", "random"}}, kContent,
           "where a picture is cut to its bucket"},
          {"background", at<&O::background>,
           TextRule{false, "^(white|black|#[0-9a-fA-F]{6})$", R"(white, black or "#rrggbb" (in quotes))"},
           kContent, "colour under transparent pixels"},
          {"to_srgb", at<&O::to_srgb>, BoolRule{}, kContent,
           "pictures with an ICC profile other than sRGB are converted to sRGB; false: their numbers are "
           "taken "
           "as they are stored"},
          {"dct_margin", at<&O::dct_margin>, NumberRule{0.0, 16.0, false, false}, kContent,
           "0: JPEGs are decoded in full; from 1 on: at 1/2, 1/4 or 1/8 of their size, which is quicker, as "
           "long "
           "as that stays so many times the size they are resized to"},
          {"jitter_brightness", at<&O::jitter_brightness>, NumberRule{0.0, 1.0, false, false}, kContent,
           "for each item a factor between 1 - x and 1 + x"},
          {"jitter_contrast", at<&O::jitter_contrast>, NumberRule{0.0, 1.0, false, false}, kContent,
           "the same, of the distance to the mean grey"},
          {"jitter_saturation", at<&O::jitter_saturation>, NumberRule{0.0, 1.0, false, false}, kContent,
           "the same, of the distance to each pixel's grey"},
          {"on_bad_item", at<&O::on_bad_item>, ChoiceRule{{"skip", "stop"}}, kContent,
           "skip: weight 0 and counted; stop: the run ends"},
          {"on_unavailable", at<&O::on_unavailable>, ChoiceRule{{"stop", "skip"}}, kFree,
           "storage that fails after all retries: stop: the run ends, and goes on with the same command; "
           "skip: "
           "the item is left out as a bad one"},
          {"bad_window", at<&O::bad_window>, WholeRule{1, 100'000}, kFree,
           "items of the order, and of each source, that the next two keys look back over"},
          {"max_bad_fraction", at<&O::max_bad_fraction>, NumberRule{0.0, 1.0, false, false}, kFree,
           "the run stops where more items of the window were found bad; counted of at least 100 items"},
          {"max_bad_fraction_source", at<&O::max_bad_fraction_source>, NumberRule{0.0, 1.0, false, false},
           kFree,
           "the same for each source of the index, or each shard where there is one source; 0: twice "
           "max_bad_fraction"},
          {"micro_batch_items", at<&O::micro_batch_items>, WholeRule{1, 1'000'000}, kFree,
           "mode bucket: most items of a micro-batch"},
          {"micro_batch_tokens", at<&O::micro_batch_tokens>, WholeRule{1, 1 << 24}, kFree,
           "mode pack: most positions of a micro-batch; at least sequence_length, or those of the largest "
           "picture: one a patch and, of sd3 and flux, one a token of its caption"},
          {"loader_threads", at<&O::loader_threads>, WholeRule{1, 1024}, kFree,
           "threads that read and decode, for each rank"},
          {"loader_threads_max", at<&O::loader_threads_max>, WholeRule{0, 1024}, kFree,
           "most threads that loader_tune may use, for each rank; 0: the processors that the rank has"},
          {"loader_tune", at<&O::loader_tune>, BoolRule{}, kFree,
           "threads and steps ahead follow the measured wait for data; the order never does"},
          {"item_deadline_s", at<&O::item_deadline_s>, NumberRule{0.0, 86400.0, true, false}, kFree,
           "an item that takes longer to read and decode is named in the log, seconds"},
          {"prefetch_steps", at<&O::prefetch_steps>, WholeRule{1, 1024}, kFree,
           "steps that are loaded ahead"},
          {"prefetch_bytes", at<&O::prefetch_bytes>, BytesRule{int64_t{1} << 20, int64_t{1} << 44}, kFree,
           "bound of decoded bytes ahead"},
          {"cache_bytes", at<&O::cache_bytes>, BytesRule{0, int64_t{1} << 44}, kFree,
           "decoded pictures kept in memory; 0: none"},
      }};
}

}  // namespace chiliad::spec::detail
