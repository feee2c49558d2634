// The digest of all parameters is one number, whatever the layout; a rank whose copy differs is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "chiliad/comm/meeting.h"
#include "chiliad/train/consistency.h"
#include "chiliad/train/mesh_bytes.h"
#include "chiliad/train/trainer.h"
#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"
#include "tests/support/train_ranks.h"

namespace chiliad::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Trainers at the start of a run, one rank a thread.
class ParametersDigestTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    write_pictures(folder_->path() / "pictures", 12);
    index_pictures(folder_->path() / "pictures", folder_->path() / "index");
    const auto index = index::Index::open(folder_->path() / "index");
    static_cast<void>(
        dataset::build_token_columns(index, file().model.text_max_tokens, [](int64_t, int64_t) {}));
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static spec::RunFile file() {
    return spec::parse_run_file(tiny_run_file(folder_->path() / "index", 4), "run.yaml", "run",
                                {"model.width=36", "model.heads=6"});
  }

  /// Runs `call` on every rank.
  template <typename Call>
  static void on_ranks(const parallel::MeshShape& shape, Call call) {
    const auto settings = file();
    const auto index = index::Index::open(folder_->path() / "index");
    const auto meetings = comm::meet_in_process(shape.size(), std::chrono::seconds(60));
    std::vector<std::jthread> threads;
    for (const auto& meeting : meetings) {
      threads.emplace_back([&] {
        parallel::Mesh mesh(*meeting, shape, train::mesh_bytes(settings, shape));
        const SystemClock clock;
        train::TrainerSetup setup;
        setup.run = &settings;
        setup.index = &index;
        setup.mesh = &mesh;
        setup.clock = &clock;
        setup.rates = spec::rates_of(settings.parallel);
        train::Trainer trainer(std::move(setup));
        call(trainer, mesh);
        mesh.close();
      });
    }
  }

  static std::vector<uint64_t> digests(const parallel::MeshShape& shape) {
    std::vector<uint64_t> all(static_cast<size_t>(shape.size()));
    on_ranks(shape, [&](train::Trainer& trainer, parallel::Mesh& mesh) {
      all[static_cast<size_t>(mesh.rank())] = trainer.parameters_digest();
    });
    return all;
  }

  /// What the check says on every rank after `damage`: texts, and the ranks of the last one.
  struct Found {
    std::vector<std::string> texts;
    std::vector<int> ranks;
  };
  template <typename Damage>
  static Found check_after(const parallel::MeshShape& shape, Damage damage) {
    Found found;
    std::mutex mutex;
    on_ranks(shape, [&](train::Trainer& trainer, parallel::Mesh& mesh) {
      damage(trainer, mesh);
      try {
        trainer.check_parameters();
      } catch (const train::RankMismatch& error) {
        const std::scoped_lock lock(mutex);
        EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
        found.texts.emplace_back(error.what());
        found.ranks = error.ranks();
      }
    });
    return found;
  }

 private:
  static inline std::unique_ptr<TempDir> folder_;
};

/// Flips the lowest bit of the first value of a rank's last layer.
void flip(train::Trainer& trainer) {
  float& value = *trainer.shards().back()->shard_params();
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  bits ^= 1U;
  std::memcpy(&value, &bits, sizeof(bits));
}

TEST_F(ParametersDigestTest, IsTheSameInEveryLayout) {
  const uint64_t one = digests({}).front();
  const std::vector<parallel::MeshShape> shapes{{2, 1, 1}, {1, 2, 1}, {1, 1, 2},
                                                {2, 2, 1}, {1, 3, 2}, {2, 2, 2}};
  for (const auto& shape : shapes) {
    EXPECT_EQ(digests(shape), std::vector<uint64_t>(static_cast<size_t>(shape.size()), one))
        << shape.to_string();
  }
}

TEST_F(ParametersDigestTest, SeesAFlippedBitWithoutCopies) {
  uint64_t before = 0;
  uint64_t after = 0;
  on_ranks({}, [&](train::Trainer& trainer, parallel::Mesh&) {
    before = trainer.parameters_digest();
    flip(trainer);
    after = trainer.parameters_digest();
  });
  EXPECT_NE(before, after);
}

TEST_F(ParametersDigestTest, EqualCopiesPass) {
  EXPECT_TRUE(check_after({2, 2, 2}, [](auto&, auto&) {}).texts.empty());
}

TEST_F(ParametersDigestTest, TheOddReplicaIsNamedByAllRanks) {
  const auto found = check_after({3, 1, 1}, [](auto& trainer, auto& mesh) {
    if (mesh.rank() == 1) flip(trainer);
  });
  ASSERT_EQ(found.texts.size(), 3U);
  EXPECT_THAT(found.ranks, ElementsAre(1));
  const std::string name = "parameters of rank 1 are not those of its replicas: layer ";
  for (const auto& text : found.texts) EXPECT_THAT(text, HasSubstr(name));
}

TEST_F(ParametersDigestTest, OfTwoReplicasOfAShardBothAreNamed) {
  const auto found = check_after({2, 2, 1}, [](auto& trainer, auto& mesh) {
    if (mesh.rank() == 3) flip(trainer);
  });
  EXPECT_EQ(found.texts.size(), 4U);
  EXPECT_THAT(found.ranks, ElementsAre(1, 3));  // the second shard's
}

TEST_F(ParametersDigestTest, ADamagedCopyOfATensorParallelRankIsNamed) {
  const auto found = check_after({1, 1, 3}, [](auto& trainer, auto& mesh) {
    if (mesh.rank() != 2) return;
    for (auto& shard : trainer.shards()) {
      for (const auto& piece : shard->layout().shard_pieces()) {
        if (!piece.replicated) continue;
        shard->shard_params()[piece.offset] += 1.0F;
        return;
      }
    }
  });
  EXPECT_EQ(found.texts.size(), 3U);
  EXPECT_THAT(found.ranks, ElementsAre(2));
  EXPECT_THAT(found.texts.front(), HasSubstr("are not those of its tensor-parallel peers"));
}

}  // namespace
}  // namespace chiliad::test
