/* Records what a process does to the files under a folder, for tests of power failures.
 *
 * Preloaded with LD_PRELOAD. Operations on files under RESIDUA_POWER_ROOT are appended to the file
 * RESIDUA_POWER_LOG, in the order in which they happened, and go to the file system as usual; only
 * that nothing is really synced, since the power does not really fail. tests/faults/power.py reads the log and works out what a disk may hold after a power
 * failure at any moment.
 *
 * A record is a header and then `size` bytes:
 *   C  inode, path             a file was created
 *   W  inode, offset, data     bytes were written
 *   T  inode, offset           the file was cut or extended to this length
 *   A  inode, offset           space was allocated: the file is at least this long
 *   S  inode                   the file, or the folder, was synced
 *   U  path                    a name was removed
 *   R  path NUL path           a name was changed
 *   L  path NUL path           a second name was given
 *   X  text                    something happened that cannot be recorded: the log is useless
 *
 * An operation is recorded before its caller goes on, so whatever happens because of it comes later
 * in the log. Not recorded: what is written
 * through stdio, which is lost whenever the power fails (caches and statistics of PostgreSQL, which
 * it does without), and through shared mappings (SQLite's index of the write-ahead log, which is
 * made again).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct header {
    char kind[8];
    uint64_t inode, offset, size;
};

static char root[PATH_MAX];
static size_t root_length;
static int log_file = -1;

#define REAL(name, result, ...)                                         \
    static result (*real)(__VA_ARGS__);                                 \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name);

static ssize_t real_writev(int file, const struct iovec *parts, int count) {
    REAL("writev", ssize_t, int, const struct iovec *, int)
    return real(file, parts, count);
}

__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("RESIDUA_POWER_ROOT"), *path = getenv("RESIDUA_POWER_LOG");
    if (!folder || !path || !realpath(folder, root)) return;
    root_length = strlen(root);
    REAL("open", int, const char *, int, ...)
    int file = real(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0) return;
    log_file = fcntl(file, F_DUPFD_CLOEXEC, 400);
    close(file);
}

static void put(char kind, uint64_t inode, uint64_t offset, const struct iovec *data, int count) {
    int before = errno;
    struct header head = {{kind}, inode, offset, 0};
    struct iovec parts[IOV_MAX];
    if (count > IOV_MAX - 1) abort();
    parts[0].iov_base = &head;
    parts[0].iov_len = sizeof head;
    for (int i = 0; i < count; i++) {
        parts[i + 1] = data[i];
        head.size += data[i].iov_len;
    }
    /* One write: the file is opened for appending, so records of several processes do not mix. */
    if (real_writev(log_file, parts, count + 1) != (ssize_t)(sizeof head + head.size)) abort();
    errno = before;
}

static void put_text(char kind, uint64_t inode, const char *text, size_t size) {
    struct iovec part = {(void *)text, size};
    put(kind, inode, 0, &part, 1);
}

static void cannot(const char *what) { put_text('X', 0, what, strlen(what)); }

static int inside(const char *path) {
    return log_file >= 0 && strncmp(path, root, root_length) == 0 &&
           (path[root_length] == '/' || path[root_length] == 0);
}

/* The inode of an open file under the root; 0 for any other. */
static uint64_t recorded(int file) {
    if (log_file < 0) return 0;
    int before = errno;
    char name[64], path[PATH_MAX];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t length = readlink(name, path, sizeof path - 1);
    struct stat found;
    uint64_t inode = 0;
    if (length > 0) {
        path[length] = 0;
        if (inside(path) && fstat(file, &found) == 0) inode = found.st_ino;
    }
    errno = before;
    return inode;
}

/* The path without links and dots, but for its last part; whether it is under the root. */
static int resolved(int folder, const char *path, char *into) {
    if (log_file < 0) return 0;
    int before = errno, found = 0;
    char whole[2 * PATH_MAX], parent[PATH_MAX];
    if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else if (folder == AT_FDCWD) {
        char here[PATH_MAX];
        if (!getcwd(here, sizeof here)) goto end;
        snprintf(whole, sizeof whole, "%s/%s", here, path);
    } else {
        char name[64], here[PATH_MAX];
        snprintf(name, sizeof name, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(name, here, sizeof here - 1);
        if (length <= 0) goto end;
        here[length] = 0;
        snprintf(whole, sizeof whole, "%s/%s", here, path);
    }
    char *last = strrchr(whole, '/');
    *last = 0;
    if (!realpath(whole[0] ? whole : "/", parent)) goto end;
    found = snprintf(into, PATH_MAX, "%s/%s", parent, last + 1) < PATH_MAX && inside(into);
end:
    errno = before;
    return found;
}

static int opened(int folder, const char *path, int flags, mode_t mode) {
    REAL("openat", int, int, const char *, int, ...)
    char name[PATH_MAX];
    int writes = (flags & O_ACCMODE) != O_RDONLY && resolved(folder, path, name);
    int there = writes && access(name, F_OK) == 0;
    int file = real(folder, path, flags, mode);
    struct stat found;
    if (file < 0 || !writes || fstat(file, &found)) return file;
    if (flags & (O_DSYNC | O_SYNC)) cannot("a file was opened with O_DSYNC or O_SYNC");
    if (!there) put_text('C', found.st_ino, name, strlen(name));
    else if (flags & O_TRUNC) put('T', found.st_ino, 0, NULL, 0);
    return file;
}

#define MODE(last)                                    \
    mode_t mode = 0;                                  \
    if (flags & (O_CREAT | O_TMPFILE)) {              \
        va_list more;                                 \
        va_start(more, last);                         \
        mode = va_arg(more, mode_t);                  \
        va_end(more);                                 \
    }

int open(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags) return opened(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags) return opened(at, path, flags, mode); }
int creat(const char *path, mode_t mode) {
    return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

FILE *fopen64(const char *path, const char *mode) {
    REAL("fopen64", FILE *, const char *, const char *)
    char name[PATH_MAX];
    int writes = mode[0] != 'r' && resolved(AT_FDCWD, path, name);
    int there = writes && access(name, F_OK) == 0;
    FILE *file = real(path, mode);
    struct stat found;
    if (!file || !writes || fstat(fileno(file), &found)) return file;
    if (!there) put_text('C', found.st_ino, name, strlen(name));
    else if (mode[0] == 'w') put('T', found.st_ino, 0, NULL, 0);
    return file;
}
FILE *fopen(const char *path, const char *mode) { return fopen64(path, mode); }

/* Record the first `done` bytes of what was to be written. */
static void wrote(int file, const struct iovec *parts, int count, off_t at, ssize_t done) {
    uint64_t inode = done > 0 ? recorded(file) : 0;
    if (!inode) return;
    for (int i = 0; i < count && done > 0; i++) {
        struct iovec part = parts[i];
        if ((ssize_t)part.iov_len > done) part.iov_len = done;
        put('W', inode, at, &part, 1);
        at += part.iov_len;
        done -= part.iov_len;
    }
}

ssize_t write(int file, const void *data, size_t size) {
    REAL("write", ssize_t, int, const void *, size_t)
    ssize_t done = real(file, data, size);
    if (done > 0 && recorded(file)) {
        struct iovec part = {(void *)data, size};
        wrote(file, &part, 1, lseek(file, 0, SEEK_CUR) - done, done);
    }
    return done;
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    ssize_t done = real_writev(file, parts, count);
    if (done > 0 && recorded(file)) wrote(file, parts, count, lseek(file, 0, SEEK_CUR) - done, done);
    return done;
}

ssize_t pwrite64(int file, const void *data, size_t size, off_t at) {
    REAL("pwrite64", ssize_t, int, const void *, size_t, off_t)
    ssize_t done = real(file, data, size, at);
    struct iovec part = {(void *)data, size};
    wrote(file, &part, 1, at, done);
    return done;
}
ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    return pwrite64(file, data, size, at);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off_t at) {
    REAL("pwritev64", ssize_t, int, const struct iovec *, int, off_t)
    ssize_t done = real(file, parts, count, at);
    wrote(file, parts, count, at, done);
    return done;
}
ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
    return pwritev64(file, parts, count, at);
}

static int synced(const char *name, int file) {
    uint64_t inode = recorded(file);
    if (!inode) return ((int (*)(int))dlsym(RTLD_NEXT, name))(file);
    put('S', inode, 0, NULL, 0);
    return 0;
}
int fsync(int file) { return synced("fsync", file); }
int fdatasync(int file) { return synced("fdatasync", file); }

int ftruncate64(int file, off_t size) {
    REAL("ftruncate64", int, int, off_t)
    int failed = real(file, size);
    uint64_t inode = failed ? 0 : recorded(file);
    if (inode) put('T', inode, size, NULL, 0);
    return failed;
}
int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

int truncate64(const char *path, off_t size) {
    REAL("truncate64", int, const char *, off_t)
    int failed = real(path, size);
    char name[PATH_MAX];
    struct stat found;
    if (!failed && resolved(AT_FDCWD, path, name) && !stat(name, &found))
        put('T', found.st_ino, size, NULL, 0);
    return failed;
}
int truncate(const char *path, off_t size) { return truncate64(path, size); }

int posix_fallocate64(int file, off_t at, off_t size) {
    REAL("posix_fallocate64", int, int, off_t, off_t)
    int failed = real(file, at, size);
    uint64_t inode = failed ? 0 : recorded(file);
    if (inode) put('A', inode, at + size, NULL, 0);
    return failed;
}
int posix_fallocate(int file, off_t at, off_t size) { return posix_fallocate64(file, at, size); }

int fallocate64(int file, int mode, off_t at, off_t size) {
    REAL("fallocate64", int, int, int, off_t, off_t)
    int failed = real(file, mode, at, size);
    uint64_t inode = failed ? 0 : recorded(file);
    if (inode && mode) cannot("fallocate with a mode");
    else if (inode) put('A', inode, at + size, NULL, 0);
    return failed;
}
int fallocate(int file, int mode, off_t at, off_t size) { return fallocate64(file, mode, at, size); }

int unlinkat(int folder, const char *path, int flags) {
    REAL("unlinkat", int, int, const char *, int)
    char name[PATH_MAX];
    int known = !(flags & AT_REMOVEDIR) && resolved(folder, path, name);
    int failed = real(folder, path, flags);
    if (known && !failed) put_text('U', 0, name, strlen(name));
    return failed;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

static void moved(char kind, int known, const char *from, const char *to) {
    struct iovec parts[2] = {{(void *)from, strlen(from) + 1}, {(void *)to, strlen(to)}};
    if (known == 3) put(kind, 0, 0, parts, 2);
    else if (known) cannot("a name was moved into the folder or out of it");
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    REAL("renameat", int, int, const char *, int, const char *)
    char one[PATH_MAX], two[PATH_MAX];
    int known = resolved(from_folder, from, one) | resolved(to_folder, to, two) << 1;
    int failed = real(from_folder, from, to_folder, to);
    if (!failed) moved('R', known, one, two);
    return failed;
}
int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    REAL("linkat", int, int, const char *, int, const char *, int)
    char one[PATH_MAX], two[PATH_MAX];
    int known = resolved(from_folder, from, one) | resolved(to_folder, to, two) << 1;
    int failed = real(from_folder, from, to_folder, to, flags);
    if (!failed) moved('L', known, one, two);
    return failed;
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
