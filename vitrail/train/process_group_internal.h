// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the processes of a run decide together.  All of them call the same functions in the same order.
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
  bool leads() const { return rank() == 0; }  // the one that writes and shows
  const std::shared_ptr<dist::Communicator>& communicator() const { return communicator_; }

  void sum(std::vector<double>& values) const;  // over all processes; counts stay exact up to 2^53
  bool any(bool here) const;

  std::string tell(std::string text, int from = 0) const;  // the text of process `from`
  // The text of the first process that has one, with its number where there are several.
  std::string first_text(const std::string& here) const;
  // Contiguous tensors of the same shapes everywhere become the leader's.
  void copy_from_leader(const std::vector<nn::NamedTensor>& tensors) const;

 private:
  std::shared_ptr<dist::Communicator> communicator_;
};

}  // namespace vitrail::train
