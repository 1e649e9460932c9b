/* Stands in for the reference BLAS of MLX's Linux wheel: hands cblas_sgemm and cblas_dgemm on to NumPy's OpenBLAS.
 *
 * MLX passes 32-bit integers (LP64); NumPy's OpenBLAS takes 64-bit ones (ILP64). The prototypes below widen each
 * argument with its sign. Loaded with RTLD_GLOBAL before MLX, these definitions come first when MLX's symbols are bound.
 *
 * OpenBLAS's threads wait for one another by spinning. On a busy machine each wait can last a time slice, which makes a
 * model of small products ten times slower than with one thread, so only products that outlast a slice are shared.
 */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*sgemm_fn)(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                         const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
typedef void (*dgemm_fn)(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha,
                         const double *a, int64_t lda, const double *b, int64_t ldb, double beta, double *c,
                         int64_t ldc);

typedef int (*get_threads_fn)(void);
typedef void (*set_threads_fn)(int count);

/* Multiplications in a product that is worth a second thread: a few milliseconds on one core. */
static const double SHARED_WORK = 128e6;

static sgemm_fn sgemm;
static dgemm_fn dgemm;
static get_threads_fn get_threads;
static set_threads_fn set_threads;
static int64_t calls;

/* Must be called once, before MLX computes anything. */
void tiny_llm_blas_route(void *to_sgemm, void *to_dgemm, void *to_get_threads, void *to_set_threads) {
    sgemm = (sgemm_fn)to_sgemm;
    dgemm = (dgemm_fn)to_dgemm;
    get_threads = (get_threads_fn)to_get_threads;
    set_threads = (set_threads_fn)to_set_threads;
}

/* Counts the product and, if it is small, leaves OpenBLAS one thread. Returns the number of threads to restore, or 0. */
static int begin(int m, int n, int k) {
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    int threads = get_threads();
    if (threads < 2 || (double)m * n * k >= SHARED_WORK) return 0;
    set_threads(1);
    return threads;
}

static void end(int threads) {
    if (threads) set_threads(threads);
}

/* Products routed so far: the proof that MLX reaches this library. */
int64_t tiny_llm_blas_calls(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc) {
    int threads = begin(m, n, k);
    sgemm(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    end(threads);
}

void cblas_dgemm(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc) {
    int threads = begin(m, n, k);
    dgemm(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    end(threads);
}

#ifdef __cplusplus
}
#endif
