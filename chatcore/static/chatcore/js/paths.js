// Build the addresses of this server, which may be below a path. The page names it in <html>.

const { home } = document.documentElement.dataset; // "/", or "/chat/"

// Return the address of a path such as "login/".
export const buildPath = (path) => `${home}${path}`;
