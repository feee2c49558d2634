#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/remote/open_store.h"
#include "chiliad/remote/s3_store.h"
#include "tests/support/temp_dir.h"

namespace chiliad::remote {
namespace {

class S3SettingsTest : public ::testing::Test {
 protected:
  S3SettingsTest() {
    variables_["HOME"] = home_.path().string();
    io::make_folders(home_.path() / ".aws");
    io::write_atomic(home_.path() / ".aws/credentials",
                     "[default]\naws_access_key_id = one\naws_secret_access_key = two\n\n[work]\n"
                     "aws_access_key_id=three\naws_secret_access_key=four\naws_session_token=five\n");
    io::write_atomic(home_.path() / ".aws/config",
                     "[default]\nregion = eu-west-1\n[profile work]\nregion=ap-1\n");
  }
  Environment environment() const {
    return [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional<std::string>(found->second);
    };
  }
  S3Settings settings() const { return s3_settings(environment()); }
  test::TempDir home_;
  std::map<std::string, std::string> variables_;
};

TEST_F(S3SettingsTest, ReadsTheDefaultProfile) {
  EXPECT_EQ(settings().credentials.key, "one");
  EXPECT_EQ(settings().credentials.secret, "two");
  EXPECT_EQ(settings().region, "eu-west-1");
}

TEST_F(S3SettingsTest, ReadsTheNamedProfile) {
  variables_["AWS_PROFILE"] = "work";
  EXPECT_EQ(settings().credentials.key, "three");
  EXPECT_EQ(settings().credentials.session_token, "five");
  EXPECT_EQ(settings().region, "ap-1");
}

TEST_F(S3SettingsTest, TheEnvironmentGoesFirst) {
  variables_["AWS_ACCESS_KEY_ID"] = "six";
  variables_["AWS_SECRET_ACCESS_KEY"] = "seven";
  variables_["AWS_REGION"] = "us-west-2";
  variables_["AWS_ENDPOINT_URL"] = "http://127.0.0.1:9000";
  EXPECT_EQ(settings().credentials.key, "six");
  EXPECT_EQ(settings().region, "us-west-2");
  EXPECT_EQ(settings().endpoint, "http://127.0.0.1:9000");
}

TEST_F(S3SettingsTest, HalfAKeyIsRefused) {
  variables_["AWS_ACCESS_KEY_ID"] = "six";
  EXPECT_THROW(static_cast<void>(settings()), InvalidInput);
}

TEST_F(S3SettingsTest, AProfileThatIsNotThereIsRefused) {
  variables_["AWS_PROFILE"] = "other";
  EXPECT_THROW(static_cast<void>(settings()), InvalidInput);
}

TEST_F(S3SettingsTest, AStoresOwnProfileSaysAll) {
  variables_["AWS_ACCESS_KEY_ID"] = "six";
  variables_["AWS_SECRET_ACCESS_KEY"] = "seven";
  variables_["AWS_REGION"] = "us-west-2";
  variables_["AWS_ENDPOINT_URL"] = "http://127.0.0.1:9000";
  io::write_atomic(home_.path() / ".aws/config",
                   "[profile work]\nregion=ap-1\nendpoint_url = http://127.0.0.1:9001\n");
  const auto own = s3_settings(with_profile(environment(), "work"));
  EXPECT_EQ(own.credentials.key, "three");
  EXPECT_EQ(own.region, "ap-1");
  EXPECT_EQ(own.endpoint, "http://127.0.0.1:9001");
  EXPECT_EQ(s3_settings(with_profile(environment(), "")).credentials.key, "six");
}

TEST_F(S3SettingsTest, ProfilesMayLieElsewhere) {
  io::write_atomic(home_.path() / "keys", "[work]\naws_access_key_id=eight\naws_secret_access_key=nine\n");
  variables_["AWS_SHARED_CREDENTIALS_FILE"] = (home_.path() / "keys").string();
  EXPECT_EQ(s3_settings(with_profile(environment(), "work")).credentials.key, "eight");
}

TEST_F(S3SettingsTest, WithoutKeysNothingIsSigned) {
  variables_["HOME"] = "/nowhere";
  EXPECT_TRUE(settings().credentials.key.empty());
}

TEST(S3StoreTest, RefusesAnAddressWithoutABucket) {
  const store::Waiter waiter;
  EXPECT_THROW(S3Store("s3://", S3Settings{}, waiter), InvalidInput);
}

}  // namespace
}  // namespace chiliad::remote
