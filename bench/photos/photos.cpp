// CPU-seconds that a thousand pictures cost: the loader's whole way from shards to batches, the fused decode
// alone, and the floor, which is the decoder alone. All rounds are interleaved, so that a busy machine hits
// all alike.
#include <fmt/core.h>
#include <spng.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <jpeglib.h>

#include "chiliad/base/error.h"
#include "chiliad/image/decode_fit.h"
#include "chiliad/loader/loader.h"
#include "chiliad/loader/part_reader.h"
#include "tests/support/synthetic_index.h"

namespace {

using namespace chiliad;

constexpr int32_t kSide = 256;
constexpr int64_t kBatch = 64;
// What Pillow's draft does.
constexpr double kMargin = 1.0;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Picture {
  std::vector<std::byte> bytes;
  image::Info info;
};

/// libjpeg-turbo alone, as any program would use it.
void floor_jpeg(const Picture& picture, bool scaled, std::vector<uint8_t>& room) {
  jpeg_decompress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(picture.bytes.data()), picture.bytes.size());
  jpeg_read_header(&cinfo, TRUE);
  cinfo.out_color_space = JCS_RGB;
  const auto fit = image::cover_fit(picture.info.width, picture.info.height, kSide, kSide);
  cinfo.scale_denom = static_cast<unsigned>(
      image::dct_denominator(picture.info.width, picture.info.height, fit, scaled ? kMargin : 0.0));
  jpeg_start_decompress(&cinfo);
  const size_t stride = size_t{3} * cinfo.output_width;
  room.resize(stride * cinfo.output_height);
  std::vector<JSAMPROW> rows;
  for (JDIMENSION y = 0; y < cinfo.output_height; ++y) rows.push_back(room.data() + stride * y);
  while (cinfo.output_scanline < cinfo.output_height)
    jpeg_read_scanlines(&cinfo, rows.data() + cinfo.output_scanline,
                        cinfo.output_height - cinfo.output_scanline);
  jpeg_finish_decompress(&cinfo);
  jpeg_destroy_decompress(&cinfo);
}

/// libspng alone.
void floor_png(const Picture& picture, std::vector<uint8_t>& room) {
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> context(spng_ctx_new(0), &spng_ctx_free);
  spng_set_png_buffer(context.get(), picture.bytes.data(), picture.bytes.size());
  size_t size = 0;
  spng_decoded_image_size(context.get(), SPNG_FMT_RGB8, &size);
  room.resize(size);
  spng_decode_image(context.get(), room.data(), size, SPNG_FMT_RGB8, 0);
}

class Bench {
 public:
  Bench(std::string set, const index::Index& index, int64_t num_steps)
      : set_(std::move(set)), index_(index), num_steps_(num_steps) {
    data_.batch = kBatch;
    data_.resolution = data_.bucket_min = data_.bucket_max = data_.bucket_step = kSide;
    data_.micro_batch_items = kBatch;
    plan_ = std::make_unique<stepplan::Plan>(index_, data_, 1, test::byte_tokens(index_));
    num_steps_ = std::min(num_steps_, plan_->steps_per_epoch());
  }

  /// The pictures of the same steps, read and verified.
  void read_pictures() {
    loader::PartReader reader(index_);
    for (int64_t step = 0; step < num_steps_; ++step) {
      for (const auto& item : plan_->select(step, {}).items) {
        const auto part = index_.image_part(item.sample);
        auto read = reader.read(*index_.shard_of(item.sample), *part);
        CHILIAD_CHECK(read.refusal.empty(), "{}", read.refusal);
        Picture picture{{read.bytes.begin(), read.bytes.end()}, {}};
        picture.info = image::probe(picture.bytes).value.value();
        pictures_.push_back(std::move(picture));
      }
    }
  }

  void round(bool scaled) {
    const std::string suffix = scaled ? "_scaled" : "";
    note("floor" + suffix, cpu_of([&] { run_floor(scaled); }));
    note("fit" + suffix, cpu_of([&] { run_fit(scaled); }));
    note("loader" + suffix, cpu_of([&] { run_loader(scaled); }));
  }

  [[nodiscard]] double least(const std::string& what) const { return least_.at(what); }
  [[nodiscard]] size_t num_pictures() const { return pictures_.size(); }

 private:
  template <typename Run>
  double cpu_of(const Run& run) {
    const double start = cpu_seconds();
    run();
    return 1000.0 * (cpu_seconds() - start) / static_cast<double>(pictures_.size());
  }
  void note(const std::string& what, double value) {
    fmt::print(stderr, "{} {}: {:.3f} CPU-s/1000\n", set_, what, value);
    const auto [at, fresh] = least_.try_emplace(what, value);
    if (!fresh) at->second = std::min(at->second, value);
  }
  void run_floor(bool scaled) {
    std::vector<uint8_t> room;
    for (const Picture& picture : pictures_) {
      if (picture.info.format == image::Format::kPng) {
        floor_png(picture, room);
      } else {
        floor_jpeg(picture, scaled, room);
      }
    }
  }
  void run_fit(bool scaled) {
    std::vector<std::byte> slot(size_t{3} * kSide * kSide);
    image::FitOptions options;
    options.fit = [](int32_t width, int32_t height) { return image::cover_fit(width, height, kSide, kSide); };
    options.dct_margin = scaled ? kMargin : 0.0;
    for (const Picture& picture : pictures_) {
      const auto refusal = image::decode_fit(picture.bytes, options, slot);
      CHILIAD_CHECK(refusal.empty(), "{}", refusal);
    }
  }
  void run_loader(bool scaled) {
    loader::LoaderOptions options;
    options.pack.max_items = kBatch;
    options.pack.work = test::transformer_work();
    options.pictures.dct_margin = scaled ? kMargin : 0.0;
    loader::Loader loading(index_, *plan_, {}, 0, num_steps_, options);
    for (int64_t step = 0; step < num_steps_; ++step) static_cast<void>(loading.next());
    CHILIAD_CHECK_EQ(loading.stats().bad_items, 0);
  }

  std::string set_;
  const index::Index& index_;
  int64_t num_steps_;
  spec::DataOptions data_;
  std::unique_ptr<stepplan::Plan> plan_;
  std::vector<Picture> pictures_;
  std::map<std::string, double> least_;
};

bool print(const std::string& metric, double value, const char* unit, double target) {
  const bool ok = target == 0.0 || value <= target;
  fmt::print(R"({{"bench":"photos","metric":"{}","value":{:.5g},"unit":"{}","target":{},"ok":{}}})"
             "\n",
             metric, value, unit, target == 0.0 ? "null" : fmt::format("{:g}", target),
             target == 0.0 ? "null"
             : ok          ? "true"
                           : "false");
  return ok;
}

/// Targets as ratios of the floor of the same run; 0: none.
bool report(const Bench& bench, const std::string& set, const std::string& suffix, double target_ratio) {
  const double floor = bench.least("floor" + suffix);
  const double fit = bench.least("fit" + suffix);
  const double loader = bench.least("loader" + suffix);
  const char* unit = "CPU-s/1000 pictures";
  print(set + suffix + "_floor", floor, unit, 0.0);
  print(set + suffix + "_decode_and_resize", fit, unit, 0.0);
  print(set + suffix + "_loader", loader, unit, 0.0);
  bool ok = print(set + suffix + "_loader_over_floor", loader / floor, "ratio", target_ratio);
  ok &= print(set + suffix + "_beside_decode_and_resize", (loader - fit) / loader, "fraction", 0.03);
  return ok;
}

}  // namespace

/// photos SET INDEX [STEPS [ROUNDS]]; SET: photo or png.
int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "photos SET INDEX [STEPS [ROUNDS]]\n");
    return 2;
  }
  const std::string set = argv[1];
  const int64_t num_steps = argc > 3 ? std::atoll(argv[3]) : 8;
  const int num_rounds = argc > 4 ? std::atoi(argv[4]) : 3;
  const auto index = index::Index::open(argv[2]);
  Bench bench(set, index, num_steps);
  bench.read_pictures();
  for (int i = 0; i < num_rounds; ++i) {
    bench.round(false);
    if (set == "photo") bench.round(true);
  }
  bool ok = report(bench, set, "", set == "photo" ? 1.25 : 0.0);
  if (set == "photo") ok &= report(bench, set, "_scaled", 1.22);
  return ok ? 0 : 1;
}
