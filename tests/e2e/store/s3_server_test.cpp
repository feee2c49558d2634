// SeaweedFS as S3 server on the loopback: what we sign and read is understood by somebody else's server.
#include <arpa/inet.h>
#include <curl/curl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "chiliad/base/unique_fd.h"
#include "chiliad/io/file.h"
#include "chiliad/remote/s3_store.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace chiliad::remote {
namespace {

constexpr Nanoseconds kTimeout = std::chrono::seconds(20);

std::string server_program() {
  if (const char* given = std::getenv("CHILIAD_WEED")) return given;
  const std::filesystem::path root = std::filesystem::path(CHILIAD_TEST_DATA).parent_path().parent_path();
  return (root / ".deps/servers/bin/weed").string();
}

/// Ports that nobody has; held together, so that they differ.
std::vector<int> free_ports(size_t count) {
  std::vector<UniqueFd> sockets;
  std::vector<int> ports;
  for (size_t i = 0; i < count; ++i) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket.get(), generic, length), 0);
    EXPECT_EQ(::getsockname(socket.get(), generic, &length), 0);
    ports.push_back(ntohs(address.sin_port));
    sockets.push_back(std::move(socket));
  }
  return ports;
}

class S3ServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!std::filesystem::exists(server_program())) return;
    server_ = new Server;
    ASSERT_TRUE(test::poll_until(std::chrono::seconds(60), [] { return put("", "") == 200; }));
    ASSERT_EQ(put("set/a b&.tar", "0123456789"), 200);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(put(fmt::format("set/part/{}.tar", i), "x"), 200);
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << "no SeaweedFS at " << server_program() << ": ./dev setup lays it";
  }

  struct Server {
    Server() {
      const auto p = free_ports(8);
      io::write_atomic(folder.path() / "s3.json",
                       R"({"identities":[{"name":"t","credentials":[{"accessKey":"testkey",)"
                       R"("secretKey":"testsecret"}],"actions":["Admin","Read","Write","List"]}]})");
      io::make_folders(folder.path() / "data");
      address = fmt::format("http://127.0.0.1:{}", p[6]);
      std::vector<std::string> argv{server_program(),
                                    "server",
                                    "-ip=127.0.0.1",
                                    "-ip.bind=127.0.0.1",
                                    "-s3",
                                    "-s3.port.iceberg=0",
                                    "-master.telemetry=false",
                                    "-master.volumeSizeLimitMB=64"};
      const char* names[]{"master.port", "master.port.grpc", "volume.port", "volume.port.grpc",
                          "filer.port",  "filer.port.grpc",  "s3.port",     "s3.port.grpc"};
      for (size_t i = 0; i < p.size(); ++i) argv.push_back(fmt::format("-{}={}", names[i], p[i]));
      argv.push_back("-s3.config=" + (folder.path() / "s3.json").string());
      argv.push_back("-dir=" + (folder.path() / "data").string());
      program =
          std::make_unique<test::Program>(argv, test::Program::Environment{{"HOME", folder.path().string()}});
    }
    test::TempDir folder;
    std::string address;
    std::unique_ptr<test::Program> program;
  };

  /// Status of a signed PUT; of the bucket itself where `name` is empty.
  static int64_t put(const std::string& name, const std::string& bytes) {
    CURL* handle = curl_easy_init();
    std::string address = server_->address + "/bucket";
    if (!name.empty()) address += "/" + percent_encoded(name, true);
    curl_easy_setopt(handle, CURLOPT_URL, address.c_str());
    std::FILE* body = std::tmpfile();
    std::fwrite(bytes.data(), 1, bytes.size(), body);
    std::rewind(body);
    curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(handle, CURLOPT_READDATA, body);
    curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(bytes.size()));
    curl_easy_setopt(handle, CURLOPT_AWS_SIGV4, "aws:amz:us-east-1:s3");
    curl_easy_setopt(handle, CURLOPT_USERPWD, "testkey:testsecret");
    curl_easy_setopt(handle, CURLOPT_TIMEOUT, 10L);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    int64_t status = 0;
    if (curl_easy_perform(handle) == CURLE_OK) curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(handle);
    std::fclose(body);
    return status;
  }
  std::unique_ptr<S3Store> open(const std::string& secret = "testsecret") {
    S3Settings settings;
    settings.endpoint = server_->address;
    settings.credentials = {"testkey", secret, ""};
    return std::make_unique<S3Store>("s3://bucket/set", settings, waiter_);
  }

  static Server* server_;  // of the suite
  store::Waiter waiter_;
};

S3ServerTest::Server* S3ServerTest::server_ = nullptr;

TEST_F(S3ServerTest, ReadsASignedRange) {
  std::string text(4, '?');
  EXPECT_EQ(open()->read("a b&.tar", 3, std::as_writable_bytes(std::span(text)), kTimeout), 4);
  EXPECT_EQ(text, "3456");
}

TEST_F(S3ServerTest, ListsBelowThePrefix) {
  std::vector<std::string> names;
  for (const auto& info : open()->list("", kTimeout).objects) names.push_back(info.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("a b&.tar", "part/0.tar", "part/1.tar", "part/2.tar"));
}

TEST_F(S3ServerTest, KnowsSizesAndTimes) {
  const auto info = open()->stat("a b&.tar", kTimeout);
  EXPECT_EQ(info.size, 10);
  EXPECT_GT(info.mtime_ns, 0);
}

TEST_F(S3ServerTest, AWrongSecretIsDeniedAndNotRepeated) {
  std::string text(4, '?');
  try {
    static_cast<void>(
        open("hunter2")->read("a b&.tar", 3, std::as_writable_bytes(std::span(text)), kTimeout));
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("SignatureDoesNotMatch"));
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("hunter2")));
  }
}

TEST_F(S3ServerTest, AMissingObjectIsTheUsersMistake) {
  EXPECT_THROW(static_cast<void>(open()->stat("missing.tar", kTimeout)), InvalidInput);
}

}  // namespace
}  // namespace chiliad::remote
