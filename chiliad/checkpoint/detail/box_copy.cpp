#include "chiliad/checkpoint/detail/box_copy.h"

#include <vector>

namespace chiliad::checkpoint::detail {
namespace {

/// An axis outside of the pieces.
struct OuterAxis {
  int64_t extent = 0;
  int64_t source_stride = 0;
  int64_t target_stride = 0;
  int64_t position = 0;
};

}  // namespace

void for_each_piece(const Box& source, const Box& target, const Box& common,
                    const std::function<void(int64_t, int64_t, int64_t)>& copy) {
  int64_t from = 0;
  int64_t to = 0;
  int64_t source_stride = 1;
  int64_t target_stride = 1;
  int64_t piece = 1;
  bool contiguous = true;  // all inner axes are whole in both arrays
  std::vector<OuterAxis> outer;
  for (int axis = common.size.rank() - 1; axis >= 0; --axis) {
    from += (common.offset[axis] - source.offset[axis]) * source_stride;
    to += (common.offset[axis] - target.offset[axis]) * target_stride;
    if (contiguous) {
      piece *= common.size[axis];
    } else {
      outer.push_back({common.size[axis], source_stride, target_stride, 0});
    }
    contiguous =
        contiguous && common.size[axis] == source.size[axis] && common.size[axis] == target.size[axis];
    source_stride *= source.size[axis];
    target_stride *= target.size[axis];
  }
  while (true) {
    copy(from, to, piece);
    size_t axis = 0;
    for (; axis < outer.size(); ++axis) {
      OuterAxis& at = outer[axis];
      from += at.source_stride;
      to += at.target_stride;
      if (++at.position < at.extent) break;
      from -= at.extent * at.source_stride;
      to -= at.extent * at.target_stride;
      at.position = 0;
    }
    if (axis == outer.size()) return;
  }
}

}  // namespace chiliad::checkpoint::detail
