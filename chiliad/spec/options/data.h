#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chiliad::spec {

/// A weight from a step on.
struct WeightPoint {
  int64_t step = 0;
  double weight = 1.0;
  bool operator==(const WeightPoint&) const = default;
};

/// A source of items, or a group of sources with a weight of its own (docs/guides/mixing.md).
struct DataSource {
  std::string name;
  std::string index;                          ///< empty: a group
  std::vector<WeightPoint> weight{{0, 1.0}};  ///< among its siblings; by rising steps, the first of step 0
  bool ramp = false;   ///< weights go straight from point to point; false: each holds until the next
  int64_t epochs = 0;  ///< of the source, then it gives nothing more; 0: for ever
  std::vector<std::string> languages;  ///< instead of data.languages; empty: those
  std::vector<DataSource> sources;     ///< of a group
  bool operator==(const DataSource&) const = default;
};

/// Section `data`: everything that decides which items a step holds (with run.seed and the journal).
struct DataOptions {
  std::string index;                ///< folder made by `chiliad data index`; empty where there are sources
  std::vector<DataSource> sources;  ///< instead of `index`
  std::string mixing = "weights";   ///< weights, size, temperature or concatenate
  double mixing_alpha = 0.5;        ///< temperature: weights are sizes to this power
  /// bucket: pictures of one shape a micro-batch; pack: no padding; pad: to the longest, for comparison.
  std::string mode = "bucket";
  int64_t batch = 32;            ///< items a step, over all ranks
  std::string buckets = "auto";  ///< auto, kohya, or a published table (bucket_tables.h)
  /// auto: as the table's authors do; ratio: nearest by |ln|; linear: by width / height; most_pixels: most
  /// kept
  std::string bucket_choice = "auto";
  double max_crop = 0.12;  ///< most_pixels: part of a picture that may be cut off for it
  bool bucket_no_upscale =
      false;                ///< auto, kohya: pictures are only made smaller; shapes are cut to bucket_step
  int64_t resolution = 32;  ///< buckets hold about resolution^2 pixels
  int64_t bucket_step = 8;  ///< sides are multiples of it; a multiple of model.patch
  int64_t bucket_min = 16;  ///< shortest side
  int64_t bucket_max = 64;  ///< longest side
  double max_aspect_error =
      0.0;  ///< |ln(ratio / bucket ratio)| above it: the item is dropped and counted; 0: never
  std::vector<std::string> languages{"en"};  ///< captions to draw from, per item among those it has
  int64_t limit = 0;     ///< use only the first N items of the index (by a keyed choice); 0: all
  int64_t held_out = 0;  ///< items of the index that training never shows, by a keyed choice: for evaluation
  std::string order =
      "window";  ///< window: permuted blocks, then inside a window; full: all items permuted; sequential
  int64_t window_blocks = 16;  ///< K of the window
  int64_t shape_clusters = 1;  ///< 1: no clustering; N: steps of a window draw from N groups of shapes
  std::string tokenizer;       ///< pack: a tokenizer.json; empty: bytes
  std::string
      end_token;  ///< pack: content of the token behind each document; empty: none (bytes have theirs)
  int64_t sequence_length = 1024;  ///< pack: a document is cut to so many positions (and a last target)
  std::string packs;     ///< pack: a file of `chiliad data pack`, whose packs are a step's items; empty: none
  bool flip = false;     ///< random horizontal flip
  bool to_srgb = false;  ///< colours of other ICC profiles are converted
  std::string crop = "center";       ///< center or random
  std::string background = "white";  ///< colour under alpha: white, black, or "#rrggbb"
  double dct_margin = 0.0;         ///< 0: JPEGs in full; from 1 on: decoded at 1/2, 1/4 or 1/8 of their size
                                   ///< while that stays this many times the size needed
  double jitter_brightness = 0.0;  ///< a factor in [1 - x, 1 + x] for each item; so the next two
  double jitter_contrast = 0.0;
  double jitter_saturation = 0.0;
  std::string on_bad_item = "skip";     ///< skip (weight 0, counted) or stop
  std::string on_unavailable = "stop";  ///< storage that fails for good: stop, or skip as a bad item
  int64_t bad_window = 1000;            ///< items of the order that the next two look back over
  double max_bad_fraction = 0.05;       ///< found bad of those; above it the run stops
  double max_bad_fraction_source =
      0.0;                            ///< the same of each source (of one source: each shard); 0: twice that
  int64_t micro_batch_items = 32;     ///< most items of a micro-batch
  int64_t micro_batch_tokens = 4096;  ///< pack: most positions of a micro-batch
  int64_t loader_threads = 2;
  int64_t loader_threads_max = 0;  ///< that tuning may use; 0: as many as the machine has for the rank
  bool loader_tune = true;         ///< threads and steps ahead follow the measured wait
  double item_deadline_s = 10.0;   ///< an item that takes longer is named in the log
  int64_t prefetch_steps = 4;
  int64_t prefetch_bytes = 64 << 20;  ///< bound of decoded bytes ahead
  int64_t cache_bytes = 256 << 20;    ///< decoded pictures kept (0: none)
};

}  // namespace chiliad::spec
