// What every store must do: a folder, a web server, S3.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "chiliad/io/file.h"
#include "chiliad/remote/s3_store.h"
#include "chiliad/store/folder_store.h"
#include "chiliad/store/reliable_store.h"
#include "tests/support/http_server.h"
#include "tests/support/temp_dir.h"

namespace chiliad::store {
namespace {

constexpr Nanoseconds kTimeout = std::chrono::seconds(20);

/// Makes a store of the same objects.
struct Backend {
  virtual ~Backend() = default;
  virtual void put(const std::string& name, const std::string& bytes) = 0;
  virtual std::unique_ptr<Store> open() = 0;
};

struct FolderBackend final : Backend {
  void put(const std::string& name, const std::string& bytes) override {
    io::make_folders((folder.path() / name).parent_path());
    io::write_atomic(folder.path() / name, bytes);
  }
  std::unique_ptr<Store> open() override { return std::make_unique<FolderStore>(folder.path()); }
  test::TempDir folder;
};

struct HttpBackend final : Backend {
  void put(const std::string& name, const std::string& bytes) override { server.put("data/" + name, bytes); }
  std::unique_ptr<Store> open() override {
    remote::HttpStore::Options options;
    options.url = options.base = server.address() + "/data";
    return std::make_unique<remote::HttpStore>(options, waiter);
  }
  test::HttpServer server;
  Waiter waiter;
};

struct S3Backend final : Backend {
  void put(const std::string& name, const std::string& bytes) override {
    server.put("bucket/set/" + name, bytes);
  }
  std::unique_ptr<Store> open() override {
    remote::S3Settings settings;
    settings.endpoint = server.address();
    settings.credentials = {"key", "secret", "token"};
    return std::make_unique<remote::S3Store>("s3://bucket/set/", settings, waiter);
  }
  test::HttpServer server;
  Waiter waiter;
};

struct ReliableBackend final : Backend {
  void put(const std::string& name, const std::string& bytes) override { inner.put(name, bytes); }
  std::unique_ptr<Store> open() override {
    return std::make_unique<ReliableStore>(inner.open(), RetryOptions{}, waiter);
  }
  S3Backend inner;
  Waiter waiter;
};

const std::map<std::string, std::unique_ptr<Backend> (*)()> kBackends{
    {"folder", [] { return std::unique_ptr<Backend>(new FolderBackend); }},
    {"http", [] { return std::unique_ptr<Backend>(new HttpBackend); }},
    {"s3", [] { return std::unique_ptr<Backend>(new S3Backend); }},
    {"reliable", [] { return std::unique_ptr<Backend>(new ReliableBackend); }}};

class StoreContractTest : public ::testing::TestWithParam<std::string> {
 protected:
  StoreContractTest() : backend_(kBackends.at(GetParam())()) {
    for (int i = 0; i < 8; ++i)
      backend_->put("part/shard " + std::to_string(i) + "&.tar", "shard" + std::to_string(i));
    backend_->put("a.tar", "0123456789");
    store_ = backend_->open();
  }
  std::string read(const std::string& object, int64_t offset, size_t length) {
    std::string text(length, '?');
    const auto got = store_->read(object, offset, std::as_writable_bytes(std::span(text)), kTimeout);
    return text.substr(0, static_cast<size_t>(got));
  }
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Store> store_;
};

TEST_P(StoreContractTest, ReadsARange) {
  EXPECT_EQ(read("a.tar", 3, 4), "3456");
}

TEST_P(StoreContractTest, ReadsAWholeObject) {
  EXPECT_EQ(read("a.tar", 0, 10), "0123456789");
}

TEST_P(StoreContractTest, ReadsShortWhereTheObjectEnds) {
  EXPECT_EQ(read("a.tar", 7, 10), "789");
  EXPECT_EQ(read("a.tar", 10, 10), "");
  EXPECT_EQ(read("a.tar", 50, 10), "");
}

TEST_P(StoreContractTest, NamesMayHoldSpacesAndSigns) {
  EXPECT_EQ(read("part/shard 5&.tar", 0, 6), "shard5");
}

TEST_P(StoreContractTest, KnowsTheSizeAndAnIdentity) {
  const ObjectInfo info = store_->stat("a.tar", kTimeout);
  EXPECT_EQ(info.size, 10);
  EXPECT_GT(info.mtime_ns, 0);
  EXPECT_FALSE(info.identity.empty());
}

TEST_P(StoreContractTest, AMissingObjectIsTheUsersMistake) {
  EXPECT_THROW(static_cast<void>(read("missing.tar", 0, 1)), InvalidInput);
  EXPECT_THROW(static_cast<void>(store_->stat("missing.tar", kTimeout)), InvalidInput);
}

TEST_P(StoreContractTest, ANameCannotLeaveTheRoot) {
  for (const char* name : {"../a.tar", "part/../a.tar", "/a.tar", "", "part//a"})
    EXPECT_THROW(static_cast<void>(read(name, 0, 1)), InvalidInput) << name;
}

TEST_P(StoreContractTest, ListsEveryObjectOnce) {
  if (GetParam() == "http") {
    EXPECT_THROW(static_cast<void>(store_->list("", kTimeout)), InvalidInput);
    return;
  }
  std::vector<std::string> names;
  std::string next;
  do {
    ListPage page = store_->list(next, kTimeout);
    for (const ObjectInfo& info : page.objects) names.push_back(info.name);
    next = page.next;
  } while (!next.empty());
  std::sort(names.begin(), names.end());
  ASSERT_EQ(names.size(), 9U);
  EXPECT_EQ(names.front(), "a.tar");
  EXPECT_EQ(names.back(), "part/shard 7&.tar");
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContractTest, ::testing::Values("folder", "http", "s3", "reliable"),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace chiliad::store
