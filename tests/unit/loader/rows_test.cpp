// The loader in mode pack: rows of documents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/loader/loader.h"
#include "tests/support/document_index.h"
#include "tests/support/made_documents.h"

namespace chiliad::loader {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int kDocuments = 90;

class RowsTest : public ::testing::Test {
 protected:
  RowsTest() : data_(kDocuments) {
    options_.mode = "pack";
    options_.batch = 12;
    options_.sequence_length = 48;
    options_.order = "full";
    make_plan(stepplan::column_counts(data_.index(), encoder().digest()));
  }

  const text::DocumentEncoder& encoder() const { return *data_.encoder(); }
  void make_plan(const stepplan::TokenCount& tokens) {
    plan_ = std::make_unique<stepplan::Plan>(data_.index(), options_, 5, tokens, encoder().digest());
  }

  LoaderOptions loader_options(int rank = 0, int num_ranks = 1) const {
    LoaderOptions options;
    options.rank = rank;
    options.pack.num_ranks = num_ranks;
    options.pack.max_tokens = 100;
    options.pack.row_work = test::row_work();
    options.documents = data_.encoder();
    options.sequence_length = options_.sequence_length;
    return options;
  }

  Loader make(const LoaderOptions& options, int64_t first, int64_t end) {
    return {data_.index(), *plan_, journal_, first, end, options};
  }

  std::vector<RankStep> steps(const LoaderOptions& options, int64_t first, int64_t end) {
    Loader loading = make(options, first, end);
    std::vector<RankStep> found;
    for (int64_t step = first; step < end; ++step) found.push_back(loading.next());
    return found;
  }

  test::MadeDocuments data_;
  spec::DataOptions options_;
  stepplan::Journal journal_;
  std::unique_ptr<stepplan::Plan> plan_;
};

Digest content_of(const RankStep& step) {
  Hasher hasher;
  hasher.add(step.digest).add(step.num_items).add(step.num_tokens);
  for (const Batch& batch : step.slots) {
    hasher.add_bytes(batch.tokens.bytes()).add_bytes(batch.targets.bytes());
    for (const int32_t start : batch.cu_seqlens) hasher.add(start);
    for (const auto& item : batch.items) hasher.add(item.sample).add(static_cast<double>(item.weight));
  }
  return hasher.digest();
}

std::vector<Digest> contents_of(const std::vector<RankStep>& steps) {
  std::vector<Digest> digests;
  for (const RankStep& step : steps) digests.push_back(content_of(step));
  return digests;
}

TEST_F(RowsTest, ARowHoldsDocumentsAndTheirNextTokens) {
  for (const RankStep& step : steps(loader_options(), 0, plan_->steps_per_epoch())) {
    for (const Batch& batch : step.slots) {
      const auto tokens = batch.tokens.as<int32_t>();
      const auto targets = batch.targets.as<int32_t>();
      for (size_t d = 0; d < batch.items.size(); ++d) {
        const auto ids =
            encoder().encode(test::MadeDocuments::document(static_cast<int>(batch.items[d].sample)));
        const auto begin = static_cast<size_t>(batch.cu_seqlens[d]);
        const auto end = static_cast<size_t>(batch.cu_seqlens[d + 1]);
        ASSERT_EQ(end - begin, std::min<size_t>(ids.size() - 1, 48));
        for (size_t i = begin; i < end; ++i) {
          ASSERT_EQ(tokens[i], ids[i - begin]);
          ASSERT_EQ(targets[i], ids[i - begin + 1]);
        }
      }
    }
  }
}

TEST_F(RowsTest, RowsHaveNoPadding) {
  for (const RankStep& step : steps(loader_options(), 0, plan_->steps_per_epoch())) {
    int64_t tokens = 0;
    for (const Batch& batch : step.slots) {
      ASSERT_EQ(static_cast<int64_t>(batch.tokens.as<int32_t>().size()), batch.cu_seqlens.back());
      ASSERT_LE(batch.cu_seqlens.back(), 100);
      tokens += batch.cu_seqlens.back();
    }
    EXPECT_EQ(tokens, step.num_tokens);
  }
}

TEST_F(RowsTest, RanksTogetherHoldTheEpochOnce) {
  for (const int ranks : {1, 2, 5, 40}) {
    std::map<int64_t, int> seen;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const RankStep& step : steps(loader_options(rank, ranks), 0, plan_->steps_per_epoch())) {
        for (const Batch& batch : step.slots) {
          for (const auto& item : batch.items) ++seen[item.sample];
        }
      }
    }
    ASSERT_EQ(seen.size(), size_t{kDocuments}) << ranks << " ranks";
    for (const auto& [sample, times] : seen) ASSERT_EQ(times, 1) << "sample " << sample;
  }
}

TEST_F(RowsTest, EmptySlotsAreRowsWithoutTokens) {
  const auto loaded = steps(loader_options(39, 40), 0, 1);
  ASSERT_EQ(loaded[0].slots.size(), 1U);
  EXPECT_THAT(loaded[0].slots[0].cu_seqlens, ::testing::ElementsAre(0));
}

TEST_F(RowsTest, OutputIsTheSameForAnyNumberOfThreads) {
  LoaderOptions many = loader_options();
  many.num_threads = 7;
  many.prefetch_steps = 9;
  EXPECT_EQ(contents_of(steps(many, 0, 12)), contents_of(steps(loader_options(), 0, 12)));
}

TEST_F(RowsTest, ResumesAtEveryStep) {
  const auto expected = contents_of(steps(loader_options(), 0, 12));
  for (int64_t first = 1; first < 12; ++first) {
    const auto resumed = contents_of(steps(loader_options(), first, 12));
    ASSERT_TRUE(std::equal(resumed.begin(), resumed.end(), expected.begin() + first))
        << "from step " << first;
  }
}

TEST_F(RowsTest, WrongBytesAreAVerdictAndKeepTheirPlace) {
  std::string lines = io::read_text(data_.source(), 1 << 20);
  const size_t at = lines.find("document 13");
  lines[at] = 'D';
  io::write_atomic(data_.source(), lines);
  int verdicts = 0;
  for (const RankStep& step : steps(loader_options(), 0, plan_->steps_per_epoch())) {
    for (const Verdict& verdict : step.verdicts) {
      ++verdicts;
      EXPECT_EQ(verdict.sample, 13);
      EXPECT_THAT(verdict.reason, HasSubstr("a.jsonl:14: "));
    }
    for (const Batch& batch : step.slots) {
      for (size_t d = 0; d < batch.items.size(); ++d) {
        const auto begin = static_cast<size_t>(batch.cu_seqlens[d]);
        const bool bad = batch.items[d].sample == 13;
        EXPECT_EQ(batch.items[d].weight, bad ? 0.0F : 1.0F);
        EXPECT_EQ(batch.targets.as<int32_t>()[begin] == kNoTarget, bad);
        EXPECT_EQ(batch.tokens.as<int32_t>()[begin] == 0, bad);
      }
    }
  }
  EXPECT_EQ(verdicts, 1);
}

TEST_F(RowsTest, AmendmentsTakeTokensFromTheCount) {
  const auto item = plan_->select(2, {}).items[4];
  Loader loading = make(loader_options(), 0, 5);
  (void)loading.next();
  loading.amend({{2, item.sample, "bad"}});
  (void)loading.next();
  EXPECT_EQ(loading.next().num_tokens, steps(loader_options(), 2, 3)[0].num_tokens - item.num_tokens);
}

TEST_F(RowsTest, ReadsEveryDocumentOnce) {
  Loader loading = make(loader_options(), 0, 6);
  for (int i = 0; i < 6; ++i) (void)loading.next();
  EXPECT_GT(loading.stats().bytes_read, 0);
  EXPECT_EQ(loading.stats().bytes_read, loading.stats().bytes_planned);
}

TEST_F(RowsTest, AStaleTokenColumnIsNamed) {
  make_plan([](uint32_t, uint32_t) { return 3U; });
  Loader loading = make(loader_options(), 0, 1);
  EXPECT_THAT([&] { (void)loading.next(); }, ThrowsMessage<CorruptData>(HasSubstr("token column")));
}

TEST_F(RowsTest, RefusesAPackingOfAnotherMode) {
  LoaderOptions options = loader_options();
  options.documents = nullptr;
  EXPECT_THROW((void)make(options, 0, 1), InternalError);
}

}  // namespace
}  // namespace chiliad::loader
