#pragma once

#include <map>
#include <memory>
#include <string>

#include "chiliad/store/store.h"
#include "chiliad/store/waiter.h"

namespace chiliad::remote {

/// s3://BUCKET/PREFIX, http://..., https://..., or a folder. S3 with the settings of the environment
/// (s3_store.h). `waiter` outlives it. Throws InvalidInput.
[[nodiscard]] std::unique_ptr<store::Store> open_store(const std::string& url, const store::Waiter& waiter);

/// The same, giving up an answer that brings no byte for so long. `profiles`: of ~/.aws, by root, whose keys,
/// region and address hold there in place of the environment's.
[[nodiscard]] store::StoreFactory store_factory(double stall_s,
                                                std::map<std::string, std::string> profiles = {});

}  // namespace chiliad::remote
