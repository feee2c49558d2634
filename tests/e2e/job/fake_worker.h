#pragma once

namespace chiliad::test {

/// A worker without tensors: speaks the channel as `chiliad-worker train` does and fails as
/// CHILIAD_FAKE_WORKER says: "kill:R:S" rank R dies at step S, the others wait for ever; "error:R:S" rank R
/// reports damaged data; "hang:R:S" rank R stops for ever, the others wait; "term:R:S" rank R sends SIGTERM
/// to the parent; "unreported:R:S" rank R writes its snapshot of step S and dies before it says so;
/// "sample:R:S" rank R writes a picture of step S into samples/.
int fake_worker_main(int argc, char** argv);

}  // namespace chiliad::test
