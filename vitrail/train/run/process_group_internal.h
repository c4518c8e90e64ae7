// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processes of a training run, with collective operations on training data.  All processes must call the same
// functions in the same order.
#include <memory>
#include <string>
#include <vector>

#include "vitrail/dist/communicator.h"
#include "vitrail/nn/module.h"

namespace vitrail::train {

class ProcessGroup {
 public:
  explicit ProcessGroup(std::shared_ptr<dist::Communicator> communicator);  // null: one process

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }
  bool is_rank_zero() const { return rank() == 0; }  // rank 0 writes the files and reports progress
  const std::shared_ptr<dist::Communicator>& communicator() const { return communicator_; }

  void all_reduce_sum(std::vector<double>& values) const;  // integers are exact up to 2^53
  bool any(bool local) const;                              // whether `local` is true in any process

  std::string broadcast_text(std::string text, int root = 0) const;  // the text of rank `root`
  // Returns the non-empty text of the lowest rank that has one, prefixed by the rank if there are several processes.
  std::string first_nonempty_text(const std::string& local) const;
  // Copies rank 0's tensors to all processes.  They must be contiguous and have the same shapes everywhere.
  void broadcast_tensors(const std::vector<nn::NamedTensor>& tensors) const;

 private:
  std::shared_ptr<dist::Communicator> communicator_;
};

}  // namespace vitrail::train
