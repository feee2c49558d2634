#include "chiliad/generate/picture_maker.h"

#include "chiliad/generate/latent_maker.h"
#include "chiliad/generate/pixel_maker.h"

namespace chiliad::generate {

std::unique_ptr<PictureMaker> make_picture_maker(const spec::RunFile& run, Network network) {
  if (spec::is_latent_diffusion(run.model)) return make_latent_maker(run, std::move(network));
  return make_pixel_maker(run, std::move(network));
}

}  // namespace chiliad::generate
