#pragma once

// Header only: it needs tensors, and the support library is free of them. For test folders with a file TORCH.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/base/unique_fd.h"
#include "chiliad/comm/group.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/index/index.h"
#include "chiliad/train/trainer.h"

namespace chiliad::test {

/// What some steps came to, put together from all ranks.
struct RanksResult {
  std::vector<double> losses;                           ///< [step]
  std::vector<double> grad_norms;                       ///< [step]
  std::vector<std::string> items;                       ///< [step], hex digest
  std::map<std::string, std::vector<float>> gradients;  ///< of the first step, mean over its items
  int64_t unequal_steps = 0;                            ///< steps in which the ranks have different work
};

struct Listener {
  UniqueFd socket;
  int port = 0;
};

inline Listener listen_on_loopback() {
  Listener listener{UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), 0};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const int fd = listener.socket.get();
  if (::bind(fd, generic, length) != 0 || ::listen(fd, 64) != 0 || ::getsockname(fd, generic, &length) != 0) {
    throw std::runtime_error("cannot listen on 127.0.0.1");
  }
  listener.port = ntohs(address.sin_port);
  return listener;
}

/// Puts a rank's part of the gradient into whole parameters.
inline void add_gradients(train::Trainer& trainer, double scale,
                          std::map<std::string, std::vector<float>>& out) {
  for (auto& shard : trainer.shards()) {
    for (const auto& param : shard->decl().params) {
      out.try_emplace(param.name, static_cast<size_t>(param.shape.count()), 0.0F);
    }
    for (const auto& piece : shard->pieces()) {
      const Shape& shape = piece.param->shape;
      const int64_t row = shape.rank() < 2 ? 1 : shape.count() / shape[0];
      const int64_t begin = (shape.rank() == 0 ? 0 : piece.box.offset[0]) * row;
      const float* data = shard->owned_gradients() + piece.offset;
      for (int64_t i = 0; i < piece.count; ++i) {
        out[piece.param->name][static_cast<size_t>(begin + i)] = static_cast<float>(data[i] * scale);
      }
    }
  }
}

/// One rank's part of a run; `result` is its own.
inline void run_rank(const spec::RunFile& file, const index::Index& index, int64_t num_steps,
                     const comm::ConnectOptions& options, RanksResult& result, std::vector<double>& work) {
  const SystemClock clock;
  const auto group = comm::connect(options);
  train::TrainerSetup setup;
  setup.run = &file;
  setup.index = &index;
  setup.group = group.get();
  setup.clock = &clock;
  train::Trainer trainer(std::move(setup));
  for (int64_t step = 0; step < num_steps; ++step) {
    const auto report = trainer.run_step(false, {});
    result.losses.push_back(report.agreement.loss);
    result.grad_norms.push_back(report.agreement.grad_norm);
    result.items.push_back(report.items.hex());
    work.push_back(report.predicted_seconds);
    if (step > 0) continue;
    const double planned = static_cast<double>(std::max<int64_t>(1, report.num_items));
    add_gradients(trainer, planned / report.agreement.actual_items, result.gradients);
  }
  group->close();
}

/// Trains `num_steps` steps with `num_ranks` ranks as threads of this process, over Gloo on loopback.
inline RanksResult run_ranks(const spec::RunFile& file, const index::Index& index, int num_ranks,
                             int64_t num_steps) {
  at::set_num_threads(1);
  Listener listener = listen_on_loopback();
  std::vector<RanksResult> results(static_cast<size_t>(num_ranks));
  std::vector<std::vector<double>> work(static_cast<size_t>(num_ranks));
  std::vector<std::exception_ptr> errors(static_cast<size_t>(num_ranks));
  const int listen_fd = num_ranks > 1 ? listener.socket.release() : -1;  // rank 0's store closes it
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < num_ranks; ++rank) {
      threads.emplace_back([&, rank] {
        const auto i = static_cast<size_t>(rank);
        comm::ConnectOptions options;
        options.rank = rank;
        options.size = num_ranks;
        options.port = listener.port;
        options.listen_fd = rank == 0 ? listen_fd : -1;
        options.timeout = std::chrono::seconds(60);
        try {
          at::set_num_threads(1);
          run_rank(file, index, num_steps, options, results[i], work[i]);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      });
    }
  }
  for (const auto& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
  RanksResult all = results.front();
  for (size_t rank = 1; rank < results.size(); ++rank) {
    for (auto& [name, values] : all.gradients) {
      const auto& part = results[rank].gradients.at(name);
      for (size_t i = 0; i < values.size(); ++i) values[i] += part[i];
    }
  }
  for (size_t step = 0; step < static_cast<size_t>(num_steps); ++step) {
    const bool differ =
        std::any_of(work.begin(), work.end(), [&](const auto& w) { return w[step] != work[0][step]; });
    if (differ) ++all.unequal_steps;
  }
  return all;
}

/// Largest difference of two gradients over the largest value of the first.
inline double gradient_error(const RanksResult& want, const RanksResult& got) {
  double largest = 0.0;
  double error = 0.0;
  for (const auto& [name, values] : want.gradients) {
    const auto& other = got.gradients.at(name);
    for (size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(values[i])));
      error = std::max(error, std::abs(static_cast<double>(values[i]) - static_cast<double>(other[i])));
    }
  }
  return error / largest;
}

/// Largest relative difference of the losses of steps [begin, end).
inline double loss_error(const RanksResult& want, const RanksResult& got, size_t begin, size_t end) {
  double error = 0.0;
  for (size_t i = begin; i < end; ++i) {
    error = std::max(error, std::abs(want.losses[i] - got.losses[i]) / std::abs(want.losses[i]));
  }
  return error;
}

}  // namespace chiliad::test
