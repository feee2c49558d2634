#include "chiliad/store/detail/folder_socket.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "chiliad/base/error.h"

namespace chiliad::store::detail {
namespace {

constexpr const char* kName = "owner.sock";

/// The socket's address by a descriptor of its folder: the paths of addresses are at most 107 bytes long.
sockaddr_un address_in(int folder_fd) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder_fd, kName);
  std::memcpy(static_cast<char*>(address.sun_path), path.c_str(), path.size() + 1);
  return address;
}

UniqueFd open_folder(const std::filesystem::path& folder) {
  return UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

}  // namespace

UniqueFd listen_in(const std::filesystem::path& folder) {
  constexpr int kBacklog = 256;
  const UniqueFd folder_fd = open_folder(folder);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  struct stat info {};
  const bool left = ::fstatat(folder_fd.get(), kName, &info, AT_SYMLINK_NOFOLLOW) == 0;
  if (left && S_ISSOCK(info.st_mode)) ::unlinkat(folder_fd.get(), kName, 0);
  const sockaddr_un address = address_in(folder_fd.get());
  if (!socket.valid() ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::fchmodat(folder_fd.get(), kName, S_IRUSR | S_IWUSR, 0) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    throw Unavailable((folder / kName).string(),
                      fmt::format("cannot make the socket of the block cache: {}. Choose a folder on a local "
                                  "disk: --set store.folder=DIR",
                                  std::strerror(errno)));
  }
  return socket;
}

std::optional<UniqueFd> connect_in(const std::filesystem::path& folder) {
  const UniqueFd folder_fd = open_folder(folder);
  if (!folder_fd.valid()) return std::nullopt;
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_in(folder_fd.get());
  if (!socket.valid() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return std::nullopt;
  return socket;
}

}  // namespace chiliad::store::detail
