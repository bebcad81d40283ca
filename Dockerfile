# One image for the three programs: node src/commands/migrate.ts, node src/serve.ts, node src/work.ts
FROM node:24-slim
ENV NODE_ENV=production
WORKDIR /app
COPY package.json package-lock.json ./
# The optional packages are the embedded PostgreSQL and a Node for machines without one: not needed here.
RUN npm ci --omit=dev --omit=optional && npm cache clean --force
COPY ley.config.js ./
COPY db ./db
COPY src ./src
USER node
EXPOSE 8080
CMD ["node", "--max-semi-space-size=16", "--heap-growing-percent=50", "src/serve.ts"]
